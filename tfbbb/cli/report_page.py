"""A report about a model as one HTML page without scripts and other files."""

import html
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from tfbbb.base.texts import shown_number
from tfbbb.cli.explain import describe_outside, describe_unusual
from tfbbb.cli.judgement_table import judgement_rows
from tfbbb.cli.report import describe_trial
from tfbbb.judging.evaluation.input_encoding import as_numbers
from tfbbb.tables.row_warnings import show_date

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tfbbb.export.manifest import Manifest
    from tfbbb.judging.evaluation import InputEncoding
    from tfbbb.judging.explain import Effect, Explanation

_MOST_COLUMNS = 200
_MOST_INTERVALS = 300
_MOST_CATEGORIES = 6

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  color: #1c2530; background: #fff; margin: 0 auto; max-width: 62rem;
  padding: 2.5rem 1.5rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .2rem; }
h2 { font-size: 1.15rem; margin: 2.6rem 0 .6rem; padding-bottom: .25rem;
  border-bottom: 1px solid #d9dee5; break-after: avoid; }
p { margin: .5rem 0; max-width: 46rem; }
.about { color: #5a6675; margin-bottom: 1.4rem; }
.said { font-size: 1.05rem; padding-left: 1.2rem; }
.warning { background: #fff6e5; border-left: 4px solid #d55e00; padding: .5rem .9rem;
  margin: .5rem 0; max-width: 46rem; }
table { border-collapse: collapse; margin: .8rem 0;
  font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .28rem .8rem; border-bottom: 1px solid #e6eaef;
  vertical-align: top; }
th { font-weight: 600; color: #46515f; border-bottom: 1px solid #aab4c0; }
th:first-child, td:first-child, .text { text-align: left; }
td { overflow-wrap: break-word; }
tr.kept td { font-weight: 600; background: #eef5fb; }
tr { break-inside: avoid; }
figure { margin: .8rem 0; break-inside: avoid; }
figure svg { max-width: 100%; height: auto; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr));
  gap: .4rem 1.2rem; }
.wide { overflow-x: auto; }
footer { color: #5a6675; margin-top: 3rem; font-size: .85rem; }
@media print { body { max-width: none; padding: 0; font-size: 11pt; }
  .wide { overflow: visible; } @page { margin: 16mm; } }
"""


@dataclass(frozen=True)
class Report:
    """What a report tells.

    Attributes:
        manifest: The manifest of the model.
        model_name: Name and version of the model.
        table_name: Name of the file of the table.
        num_rows: Number of rows of the table.
        inputs: The columns that the model reads, [n] by name.
        encoding: The inputs of the training rows; None if they are not known.
        judgement: The figures of the model and the baselines on the table.
        explanation: The explanation by the table.
        prediction: The prediction of the explained rows.
        targets: Their targets.
        written: When the report is written.
    """

    manifest: "Manifest"
    model_name: str
    table_name: str
    num_rows: int
    inputs: Mapping[str, np.ndarray]
    encoding: "InputEncoding | None"
    judgement: Mapping[str, Any]
    explanation: "Explanation"
    prediction: Any
    targets: np.ndarray
    written: datetime

    def to_html(self) -> str:
        """Returns the page."""
        manifest = self.manifest
        target = manifest.target or "the target"
        what = "a class" if manifest.classes else "a number"
        trained = f"{manifest.num_rows:.15g} rows" if manifest.num_rows else "a table"
        title = f"Predicting {target}"
        parts = [
            f"<h1>{_text(title)}</h1>",
            f'<p class="about">Model {_text(self.model_name)}, trained on {trained} '
            f"on {_text(manifest.created[:10])}. It predicts {what} from "
            f"{_count(len(manifest.features), 'column')}. This report judges it by "
            f"{_count(self.num_rows, 'row')} of {_text(self.table_name)}.</p>",
            self._summary(),
            self._figures(),
            self._calibration(),
            self._truth(),
            self._importance(),
            self._effects(),
            self._uncertainty(),
            self._columns(),
            self._tried(),
            f"<footer>Written on {self.written:%Y-%m-%d %H:%M} by tfbbb "
            f"{_text(manifest.libraries.get('tfbbb', ''))}.</footer>",
        ]
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
            + "\n".join(part for part in parts if part)
            + "\n</body>\n</html>\n"
        )

    def _summary(self) -> str:
        warnings = self._warnings()
        said = [s for s in self.judgement["sentences"] if s not in warnings]
        listed = "".join(f"<li>{_text(sentence)}</li>" for sentence in said)
        lines = [f'<ul class="said">{listed}</ul>' if said else ""]
        lines += [
            f'<div class="warning">{_text(warning)}</div>' for warning in warnings
        ]
        return "\n".join(lines)

    def _warnings(self) -> list[str]:
        lineage = self.manifest.lineage or {}
        trained = lineage.get("judgement", {}).get("warnings", [])
        outside = describe_outside(self.explanation)
        own = self.judgement["warnings"]
        return [
            *own,
            *(f"In training: {warning}" for warning in trained if warning not in own),
            *([outside] if outside else []),
        ]

    def _figures(self) -> str:
        judged = _table(judgement_rows(self.judgement), kept=1)
        lines = [
            "<h2>How good it is</h2>",
            f"<p>On the {_count(self.num_rows, 'row')} of the table, beside baselines "
            "that were fitted to the training rows. "
            + (
                "“balanced” averages the accuracy of each class; AUC is the "
                "probability that a row of a class looks more like it than another "
                "row does; ECE is how far stated probabilities are off. "
                if self.manifest.classes
                else "R² is the share of the variance that is explained; “in 90 %” is "
                "the share of true values inside the 90 % intervals. "
            )
            + "The log-likelihood is the mean log probability of what happened, in "
            "nats; greater is better.</p>",
            judged,
        ]
        training = (self.manifest.lineage or {}).get("judgement")
        if training:
            recipe = (self.manifest.lineage or {}).get("recipe", {})
            rows = recipe.get("metrics_from", _count(training["rows"], "row"))
            lines += [
                f"<p>In training, the same figures of {_text(rows)}:</p>",
                _table(judgement_rows(training), kept=1),
            ]
        return "\n".join(lines)

    def _calibration(self) -> str:
        from tfbbb.scores import plots

        classes = bool(self.manifest.classes)
        text = (
            "Where the model says 80 %, it should be right in 80 % of the rows: the "
            "dots should lie on the diagonal, up to chance."
            if classes
            else "Intervals of each level should hold that share of the true values: "
            "the line should follow the diagonal, within the band of chance."
        )

        def draw(axes: "Axes") -> None:
            if classes:
                plots.reliability_diagram(self.prediction, self.targets, axes=axes)
            else:
                plots.calibration_curve(self.prediction, self.targets, axes=axes)

        return f"<h2>Calibration</h2><p>{text}</p>{_figure(draw, (4.6, 4.6))}"

    def _truth(self) -> str:
        if self.manifest.classes:
            return self._confusion()
        from tfbbb.scores import plots

        chosen = _spread(len(self.targets), _MOST_INTERVALS)
        prediction = self.prediction.take(chosen)

        def draw(axes: "Axes") -> None:
            plots.intervals(
                prediction,
                self.targets[chosen],
                label=_plain(self.manifest.target or "target"),
                axes=axes,
            )

        some = "" if len(chosen) == self.num_rows else f" of {len(chosen)} rows"
        return (
            f"<h2>Intervals and true values</h2><p>The 90 % intervals{some}, sorted by "
            f"the predicted mean.</p>{_figure(draw, (9.0, 4.2))}"
        )

    def _confusion(self) -> str:
        """Returns a table of true and predicted classes."""
        classes = self.manifest.classes or ()
        if len(classes) > 12:
            return ""
        predicted = np.asarray(self.prediction.probabilities).argmax(axis=1)
        counts = np.zeros((len(classes), len(classes)), dtype=int)
        np.add.at(counts, (self.targets, predicted), 1)
        rows = [["true class", *(f"predicted {name}" for name in classes)]]
        rows += [
            [name, *map(str, line)] for name, line in zip(classes, counts, strict=True)
        ]
        return f"<h2>True and predicted classes</h2>{_table(rows)}"

    def _importance(self) -> str:
        from tfbbb.judging.explain.picture import draw_importance

        importance = self.explanation.importance
        if not importance:
            return ""
        lost = "accuracy lost" if self.manifest.classes else "error added (RMSE)"
        rows = [["column", "log-likelihood lost (nats per row)", lost]]
        rows += [
            [
                column.name,
                f"{column.nats:.3g} ± {column.nats_standard_error:.2g}",
                f"{shown_number(column.error, 3)} ± "
                f"{shown_number(column.error_standard_error, 2)}",
            ]
            for column in importance[:_MOST_COLUMNS]
        ]
        height = 0.9 + 0.26 * min(len(importance), 15)
        return (
            "<h2>Which columns matter</h2><p>What is lost when the values of one "
            "column are shuffled among the rows, with standard errors (bars: two of "
            "them). Columns that tell the same share their importance.</p>"
            + _figure(lambda axes: draw_importance(importance, axes), (8.0, height))
            + _table(rows)
        )

    def _effects(self) -> str:
        from tfbbb.judging.explain.picture import common_limits, draw_effect

        effects = self.explanation.effects
        if not effects:
            return ""
        classes = self.explanation.classes
        target = self.manifest.target or ""

        limits = common_limits(effects)

        def drawn(effect: "Effect") -> str:
            def draw(axes: "Axes") -> None:
                draw_effect(effect, axes, classes, target)
                axes.set_ylim(*limits)

            return _figure(draw, (3.4, 2.5))

        return (
            "<h2>How the prediction changes with each column</h2><p>The mean "
            "prediction if all rows had this value of the column. The band is what the "
            "model is unsure of for lack of data (90 %); it is not the scatter of "
            "single rows. An effect is what the model has learned, not a cause.</p>"
            f'<div class="pictures">{"".join(map(drawn, effects))}</div>'
        )

    def _uncertainty(self) -> str:
        from tfbbb.judging.explain.picture import draw_split

        split = self.explanation.split
        share = 100.0 * float(split.epistemic_share.mean())
        by = "variance" if split.measure == "variance" else "mutual information"
        rows = [["row", f"epistemic {by}", "× the median", "farthest column"]]
        rows += [
            [
                str(unusual.row + 1),
                shown_number(unusual.epistemic, 3),
                shown_number(unusual.ratio, 2),
                describe_unusual(unusual),
            ]
            for unusual in self.explanation.unusual
        ]
        return (
            "<h2>Where it is unsure</h2>"
            f"<p>More data would remove {share:.0f} % of the {split.measure} of a row, "
            "on average; the rest is noise.</p>"
            + _figure(lambda axes: draw_split(split, axes), (6.4, 3.0))
            + f"<p>The rows least like the training rows, by epistemic {by}:</p>"
            + _table(rows, text=(3,))
        )

    def _columns(self) -> str:
        known = {}
        if self.encoding is not None:
            known = {column.name: column for column in self.encoding.columns}
        rows = [["column", "kind", "in training", "in this table", "missing here"]]
        for feature in self.manifest.features[:_MOST_COLUMNS]:
            values = self.inputs[feature.name]
            texts = feature.name in known and (
                known[feature.name].categories is not None
            )
            number = values.dtype.kind in "fiub"
            missing = ~np.isfinite(as_numbers(values)) if number else values == ""
            trained = "-"
            if (column := known.get(feature.name)) is not None:
                trained = f"{column.show(column.least)} to "
                trained += column.show(column.greatest)
                if texts:
                    trained = _categories(column.categories or (), column.complete)
            rows.append(
                [
                    feature.name,
                    feature.kind,
                    trained,
                    _range(values[~missing], feature.kind),
                    str(int(np.sum(missing))),
                ]
            )
        more = len(self.manifest.features) - _MOST_COLUMNS
        note = f"<p>and {more} more columns</p>" if more > 0 else ""
        return f"<h2>Columns</h2>{_table(rows, text=(1, 2, 3))}{note}"

    def _tried(self) -> str:
        recipe = (self.manifest.lineage or {}).get("recipe")
        if not recipe:
            return ""
        chosen = {
            name.replace("_", " "): value
            for name, value in recipe["chosen"].items()
            if value is not None and not isinstance(value, Mapping)
        }
        likelihood = recipe["chosen"].get("likelihood") or {}
        if "name" in likelihood:
            chosen["likelihood"] = likelihood["name"]
        lines = [
            "<h2>What training tried</h2>",
            _table([["", "chosen"], *([n, str(v)] for n, v in chosen.items())]),
        ]
        if recipe["tried"]:
            rows = [["network", "temperature", "log-likelihood of rows left out"]]
            rows += [
                [
                    trial["network"],
                    f"{trial['temperature']:g}",
                    describe_trial(trial),
                ]
                for trial in recipe["tried"]
            ]
            kept = [trial["kept"] for trial in recipe["tried"]]
            lines.append(_table(rows, kept=1 + kept.index(True) if any(kept) else None))
        choice = self.manifest.recalibration_choice
        if choice:
            lines.append(
                f"<p>Recalibration: {_text(choice['chosen'])}. "
                f"{_text(choice['reason'])}</p>"
            )
        lines.append(
            f"<p>{recipe['epochs']} epochs, {recipe['steps']} steps"
            f"{'; ended by the limit of time' if recipe['out_of_time'] else ''}.</p>"
        )
        return "\n".join(lines)


def _figure(draw: Callable[["Axes"], object], size: tuple[float, float]) -> str:
    """Returns a picture as SVG; its texts are outlines, so that no font is missing."""
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    draw(figure.subplots())
    file = io.StringIO()
    # Without a salt, the names of clips differ from one report to the next.
    options: Any = {"svg.hashsalt": "tfbbb", "font.size": 9.0}
    with matplotlib.rc_context(options):
        figure.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    text = file.getvalue()
    return f"<figure>{text[text.index('<svg') :]}</figure>"


def _table(
    rows: Sequence[Sequence[str]],
    kept: int | None = None,
    text: tuple[int, ...] = (),
) -> str:
    """Returns a table; the first row has the headings.

    Args:
        rows: The cells.
        kept: Index of a row to set off.
        text: Indices of the columns of text, beside the first.
    """
    marks = ("", ' class="text"')

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{marks[place in text]}>{_text(cell)}</{tag}>"
            for place, cell in enumerate(row)
        )

    lines = [f"<tr>{cells('th', rows[0])}</tr>"]
    for number, row in enumerate(rows[1:], 1):
        mark = ' class="kept"' if number == kept else ""
        lines.append(f"<tr{mark}>{cells('td', row)}</tr>")
    return f'<div class="wide"><table>{"".join(lines)}</table></div>'


def _range(values: np.ndarray, kind: str) -> str:
    if not len(values):
        return "-"
    if kind == "date":
        return f"{show_date(values.min())} to {show_date(values.max())}"
    if kind == "numeric":
        return f"{shown_number(values.min(), 5)} to {shown_number(values.max(), 5)}"
    found, counts = np.unique(values.astype(str), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return _categories(tuple(found[order].tolist()), True)


def _categories(texts: Sequence[str], complete: bool) -> str:
    shown = ", ".join(text or "(missing)" for text in texts[:_MOST_CATEGORIES])
    more = len(texts) - _MOST_CATEGORIES
    if more <= 0:
        return shown
    others = "other" if more == 1 and complete else "others"
    return f"{shown} and {more}{'' if complete else ' or more'} {others}"


def _spread(number: int, most: int) -> np.ndarray:
    """Returns at most some number of indices of rows, evenly spread."""
    if number <= most:
        return np.arange(number)
    return np.linspace(0, number - 1, most).astype(int)


def _plain(text: str) -> str:
    # A dollar sign would begin a formula.
    return text.replace("$", r"\$")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _text(text: str) -> str:
    return html.escape(str(text))
