"""Regression tables on standard splits: the defaults, networks and boosted trees.

    tfbbb benchmark uci --data DIR [--sets yacht] [--methods default] [--splits 5]

DIR holds `uci/SET.npz` or `SET.npz` with `data` [rows, columns], the columns
`index_features` and `index_target`, and the rows `train_idx` and `test_idx` [splits,
rows] of each of the standard splits (Hernandez-Lobato and Adams 2015). A method gets
the training rows of a split and chooses everything within these; its predictions of the
test rows are scored in units of the target.
"""

import argparse
import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from environments import Peer
from network_settings import SETTINGS
from program import (
    Comparison,
    DataError,
    argument_parser,
    markdown_table,
    mean_and_error,
    names_among,
    number_of_splits,
    published,
    run,
    skipped_lines,
    with_error,
)
from records import RecordFile, SkippedError
from scores import MixtureOfNormals, mixture_scores, prediction_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEYS = ("data", "index_features", "index_target", "train_idx", "test_idx")
PEERS = {
    "ngboost": (
        Peer("fit_ngboost", ("ngboost==0.5.11",)),
        {"rounds": 500, "patience": 50},
    ),
    "catboost": (
        Peer("fit_catboost", ("catboost==1.2.10",)),
        {"rounds": 2000, "patience": 50, "members": 5},
    ),
    "sklearn-contrib-bde": (
        Peer("fit_bde", ("sklearn-contrib-bde==1.0.2",)),
        {"members": 8, "epochs": 200, "warmup_steps": 5000, "samples": 2000},
    ),
}
METHODS = ("default", *PEERS, *SETTINGS)
_SMOKE_ROWS = 120
_SMOKE = {
    "rounds": 20,
    "members": 2,
    "epochs": 2,
    "warmup_steps": 10,
    "samples": 10,
}
_TREES = ("ngboost", "catboost")


@dataclass(frozen=True)
class Table:
    """One set with its splits."""

    name: str
    path: Path

    @cached_property
    def arrays(self) -> Mapping[str, np.ndarray]:
        with np.load(self.path, allow_pickle=False) as archive:
            return dict(archive)

    @cached_property
    def digest(self) -> str:
        """Identifies the rows and the splits."""
        found = hashlib.sha256()
        for key in KEYS:
            found.update(np.ascontiguousarray(self.arrays[key]).tobytes())
        return found.hexdigest()[:12]

    @property
    def num_splits(self) -> int:
        return len(self.arrays["train_idx"])

    @cached_property
    def x(self) -> np.ndarray:
        columns = np.atleast_1d(self.arrays["index_features"])
        return np.asarray(self.arrays["data"], float)[:, columns]

    @cached_property
    def y(self) -> np.ndarray:
        column = int(self.arrays["index_target"])
        return np.asarray(self.arrays["data"], float)[:, column]

    @cached_property
    def whole_numbers(self) -> bool:
        """Whether all targets are whole numbers."""
        return bool(np.all(self.y == np.round(self.y)))

    def split(self, index: int, *, smoke: bool = False) -> "Split":
        train, test = (self.arrays[f"{part}_idx"][index] for part in ("train", "test"))
        most = _SMOKE_ROWS if smoke else None
        # Splits of different lengths end with negative numbers.
        return Split(self, train[train >= 0][:most], test[test >= 0])


@dataclass(frozen=True)
class Split:
    """Training and test rows of a table."""

    table: Table
    train: np.ndarray
    test: np.ndarray

    @property
    def x_train(self) -> np.ndarray:
        return self.table.x[self.train]

    @property
    def y_train(self) -> np.ndarray:
        return self.table.y[self.train]

    @property
    def x_test(self) -> np.ndarray:
        return self.table.x[self.test]

    @property
    def y_test(self) -> np.ndarray:
        return self.table.y[self.test]


def main(arguments: Sequence[str] | None = None) -> None:
    """Scores each method on each split, prints the tables and writes the records."""
    parser = argument_parser(__doc__)
    parser.add_argument(
        "--methods",
        type=names_among(METHODS),
        default=list(METHODS),
        metavar="A,B",
        help=f"methods (default: all of {', '.join(METHODS)})",
    )
    parser.add_argument(
        "--sets",
        type=lambda text: text.split(","),
        metavar="A,B",
        help="sets by file name (default: all in the directory)",
    )
    parser.add_argument(
        "--splits",
        type=number_of_splits,
        metavar="N",
        help="the first N splits (default: all)",
    )
    options = parser.parse_args(arguments)
    run(__file__, options, lambda measured: measure(measured, options), report, draw)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds one record per set, method and split."""
    tables = find_tables(options.data, options.sets)
    for method in options.methods:
        reason = find_obstacle(method)
        if reason is not None:
            measured.skip({"method": method}, reason)
            continue
        for table in tables:
            splits = range(table.num_splits)
            for split in splits[: 1 if options.smoke else options.splits]:
                found = measured.measure(
                    {"set": table.name, "method": method, "split": split},
                    lambda m=method, t=table, s=split: score(
                        m, t.split(s, smoke=options.smoke), seed=s, smoke=options.smoke
                    ),
                    settings={**settings(method), "data": table.digest},
                    seed=split,
                )
                if found is None and method in PEERS:
                    # The other splits would fail alike.
                    break


def find_tables(directory: Path, names: Sequence[str] | None = None) -> list[Table]:
    """Returns the sets of a directory.

    Raises:
        DataError: There is no set, or not one of the names.
    """
    layout = (
        f"it must hold uci/SET.npz or SET.npz with the arrays {', '.join(KEYS)}; name "
        "the directory with --data"
    )
    found = {}
    for path in [*directory.glob("*.npz"), *directory.glob("uci/*.npz")]:
        with np.load(path, allow_pickle=False) as archive:
            if set(KEYS) <= set(archive.files):
                found[path.stem] = Table(path.stem, path)
    if not found:
        raise DataError(
            f"The data directory has no table with splits: {layout}. "
            f"Received: {directory}"
        )
    for name in names or ():
        if name not in found:
            raise DataError(
                f"The data directory has no set {name!r}; it has "
                f"{', '.join(sorted(found))}. Received: {directory}"
            )
    return [found[name] for name in names or sorted(found, key=str.lower)]


def find_obstacle(method: str) -> str | None:
    """Returns why a method cannot run on this machine; None if it can."""
    if method in PEERS:
        try:
            PEERS[method][0].environment()
        except SkippedError as reason:
            return str(reason)
    return None


def settings(method: str) -> dict[str, Any]:
    """Returns what the scores of a method depend on beside the rows."""
    if method in PEERS:
        return dict(PEERS[method][1])
    return dict(SETTINGS.get(method, {}))


def score(method: str, split: Split, *, seed: int, smoke: bool) -> dict[str, Any]:
    """Fits a method to the training rows of a split and scores the test rows."""
    if method == "default":
        return score_default(split)
    options = settings(method)
    if smoke:
        options |= {name: _SMOKE[name] for name in options.keys() & _SMOKE.keys()}
    whole_numbers = split.table.whole_numbers
    if method in PEERS:
        found = PEERS[method][0].run(
            x_train=split.x_train,
            y_train=split.y_train,
            x_test=split.x_test,
            seed=seed,
            **options,
        )
        mixture = MixtureOfNormals(found["means"], found["stddevs"])
        return {
            **mixture_scores(mixture, split.y_test, whole_numbers=whole_numbers),
            "seconds": float(found["seconds"]),
            "versions": str(found["versions"]),
        }
    import networks

    found, seconds, chosen = networks.fit_and_predict(
        method, split.x_train, split.y_train, split.x_test, seed=seed, smoke=smoke
    )
    is_mixture = isinstance(found, MixtureOfNormals)
    scores = mixture_scores if is_mixture else prediction_scores
    return {
        **scores(found, split.y_test, whole_numbers=whole_numbers),
        "seconds": seconds,
        "chosen": chosen,
    }


def score_default(split: Split) -> dict[str, Any]:
    """Scores `train_table` with the name of the target and nothing else."""
    import pyarrow as pa

    from tfbbb.data import TableError
    from tfbbb.training import SpecError, TrainingDivergedError, train_table

    def table(x: np.ndarray, y: np.ndarray) -> pa.Table:
        return pa.table({**{f"x{i}": x[:, i] for i in range(x.shape[1])}, "target": y})

    start = time.perf_counter()
    try:
        trained = train_table(table(split.x_train, split.y_train), {"target": "target"})
    except (TableError, SpecError, TrainingDivergedError) as error:
        raise SkippedError(f"it failed: {error}") from error
    test = table(split.x_test, split.y_test)
    prediction = trained.model.predictive(trained.schema.inputs(test))
    np.asarray(prediction.mean)
    seconds = time.perf_counter() - start
    whole_numbers = split.table.whole_numbers
    return {
        **prediction_scores(prediction, split.y_test, whole_numbers=whole_numbers),
        "seconds": seconds,
    }


def report(measured: RecordFile) -> str:
    """Returns the tables, and where the defaults stand."""
    means = Means(measured.records)
    parts = [
        _scores_table(means, "log_likelihood", "Log-likelihood, nats per row"),
        _scores_table(means, "rmse", "Root mean squared error"),
    ]
    if means.sets_with("log_probability"):
        title = "Log-probability of the whole number"
        parts.append(_scores_table(means, "log_probability", title))
        parts.append(
            "Where all targets are whole numbers, narrow noise at these makes the "
            "density as large as one likes: read the probability of the number "
            "instead, which the papers do not report."
        )
    for score, title in (
        ("crps", "Continuous ranked probability score"),
        ("coverage_50", "Coverage of 50 % intervals, %"),
        ("coverage_90", "Coverage of 90 % intervals, %"),
        ("coverage_95", "Coverage of 95 % intervals, %"),
        ("seconds", "Seconds to fit and predict"),
    ):
        parts.append(_scores_table(means, score, title))
    parts += [_splits_line(means), *skipped_lines(measured), _standing(means)]
    return "\n\n".join(part for part in parts if part)


class Means:
    """Scores by set and method.

    Args:
        records: The records of a file.
    """

    def __init__(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._records = records
        found = {record["method"] for record in records}
        self.methods = [method for method in METHODS if method in found]
        self.sets = sorted({record["set"] for record in records}, key=str.lower)
        self.published = published("uci")["methods"]

    def values(self, name: str, method: str, score: str) -> dict[int, float | None]:
        """Returns the scores by split."""
        return {
            record["split"]: record[score]
            for record in self._records
            if (record["set"], record["method"]) == (name, method) and score in record
        }

    def sets_with(self, score: str) -> list[str]:
        """Returns the sets that have a score."""
        return sorted({r["set"] for r in self._records if score in r}, key=str.lower)

    def beside(self, name: str, method: str, other: str, score: str) -> Any:
        """Returns the means of two methods over the splits that both have; or None."""
        ours, theirs = (self.values(name, m, score) for m in (method, other))
        splits = ours.keys() & theirs.keys()
        if not splits:
            return None
        return tuple(mean_and_error(v[i] for i in splits)[0] for v in (ours, theirs))

    def published_value(self, name: str, method: str, score: str) -> float | None:
        """Returns a published figure of the set of this or a longer name."""
        for known, value in self.published[method].get(score, {}).items():
            if name.lower().startswith(known.lower()):
                return value
        return None

    def rivals(
        self, name: str, score: str, others: Sequence[str]
    ) -> dict[str, tuple[float, float]]:
        """Returns our mean and the figure of each rival that has one.

        Args:
            name: A set.
            score: `log_likelihood` or `rmse`.
            others: Rivals: measured methods, and names of published ones.
        """
        values = self.values(name, "default", score).values()
        if not values:
            return {}
        own, _ = mean_and_error(values)
        found = {}
        for other in others:
            if other in self.published:
                value = self.published_value(name, other, score)
                pair = None if value is None else (own, value)
            else:
                pair = self.beside(name, "default", other, score)
            if pair is not None:
                found[other] = pair
        return found


# Whose best log-likelihood the defaults are compared with, and HMC apart.
RIVALS = (
    *_TREES,
    *("PBP", "tuned dropout", "VMG", "PBP-MV", "deep ensemble", "DVI"),
)


def _best(
    found: Mapping[str, tuple[float, float]], *, larger: bool
) -> tuple[str, tuple[float, float]] | None:
    """Returns the rival with the best margin over us."""
    sign = 1.0 if larger else -1.0
    pairs = sorted(found.items(), key=lambda item: sign * (item[1][1] - item[1][0]))
    return pairs[-1] if pairs else None


def _scores_table(means: Means, score: str, title: str) -> str:
    sets = means.sets_with(score)
    percent = score.startswith("coverage")
    rows = []
    for method in means.methods:
        cells = []
        for name in sets:
            values = list(means.values(name, method, score).values())
            digits = 1 if percent or score == "seconds" else _digits(values)
            cells.append(with_error(values, digits, 100.0 if percent else 1.0))
        rows.append([method, *cells])
    for method, figures in means.published.items():
        cells = [means.published_value(name, method, score) for name in sets]
        if any(cell is not None for cell in cells):
            texts = ["" if cell is None else f"{cell:.2f}" for cell in cells]
            rows.append([f"{method} ({figures['source']})", *texts])
    return f"{title}:\n\n{markdown_table(['method', *sets], rows)}"


def _digits(values: Sequence[float | None]) -> int:
    """Returns the decimals that show three digits of a small mean."""
    size = abs(mean_and_error(values)[0])
    if not 0.0 < size < 0.1:
        return 2
    return 2 - int(np.floor(np.log10(size)))


def _splits_line(means: Means) -> str:
    counts = {}
    for method in means.methods:
        found = {len(means.values(name, method, "rmse")) for name in means.sets} - {0}
        counts[method] = "–".join(map(str, sorted({min(found), max(found)})))
    listed = ", ".join(f"{method} {count}" for method, count in counts.items())
    return (
        f"Splits of each set: {listed}. The published figures are means over 20 "
        "splits, of protein over 5."
    )


def _standing(means: Means) -> str:
    """Returns where the defaults stand against the best others."""
    if "default" not in means.methods:
        return ""
    rows, ahead = [], {"best": [], "HMC": [], "trees": []}
    ratios, coverages = [], []
    for name in means.sets:
        best = _best(means.rivals(name, "log_likelihood", RIVALS), larger=True)
        hmc = _best(means.rivals(name, "log_likelihood", ["HMC"]), larger=True)
        tree = _best(means.rivals(name, "rmse", _TREES), larger=False)
        values = means.values(name, "default", "coverage_90").values()
        if not values:
            continue
        coverage = mean_and_error(values)[0]
        coverages.append(coverage)
        cells = [name]
        for key, found in (("best", best), ("HMC", hmc)):
            if found is None:
                cells += ["", ""]
                continue
            rival, (ours, theirs) = found
            ahead[key].append(_round(ours) >= _round(theirs))
            cells += [f"{ours:.2f}", f"{theirs:.2f} ({rival})"]
        if tree is None:
            cells += ["", ""]
        else:
            rival, (ours, theirs) = tree
            ahead["trees"].append(ours <= theirs)
            ratios.append(ours / theirs)
            cells += [f"{theirs:.3g} ({rival})", f"{ours / theirs:.2f}"]
        rows.append([*cells, f"{100 * coverage:.1f} %"])
    columns = [
        "set",
        *("our log-likelihood", "best other", "beside HMC", "HMC"),
        *("better tree's RMSE", "ours over it", "90 % cover"),
    ]
    table = markdown_table(columns, rows)
    sentences = [
        _count(ahead["best"], "log-likelihood at least that of the best other"),
        _count(ahead["HMC"], "log-likelihood at least that of HMC"),
        _count(ahead["trees"], "RMSE at most that of the better tree"),
    ]
    if ratios:
        sentences.append(f"- largest RMSE over the better tree's: {max(ratios):.2f}")
    if coverages:
        low, high = (100 * f(coverages) for f in (min, max))
        sentences.append(
            f"- 90 % intervals cover {100 * float(np.mean(coverages)):.1f} % on "
            f"average over the sets, from {low:.1f} to {high:.1f} %"
        )
    body = "\n".join(sentence for sentence in sentences if sentence)
    return (
        "The defaults beside the best of "
        f"{', '.join(RIVALS)}, over the splits that both have; published figures have "
        f"two decimals, so ours are compared with two:\n\n{table}\n\n{body}"
    )


def _round(value: float) -> float:
    return round(value, 2)


def _count(ahead: Sequence[bool], what: str) -> str:
    return f"- {what}: {sum(ahead)} of {len(ahead)} sets" if ahead else ""


def compare(measured: RecordFile) -> list[Comparison]:
    """Returns the defaults beside the best others."""
    means = Means(measured.records)
    found = []
    for name in means.sets:
        kinds = (
            ("log-likelihood", "log_likelihood", RIVALS, True),
            ("log-likelihood beside HMC", "log_likelihood", ["HMC"], True),
            ("RMSE", "rmse", _TREES, False),
        )
        for what, score, others, larger in kinds:
            best = _best(means.rivals(name, score, others), larger=larger)
            if best is not None:
                rival, (ours, theirs) = best
                if larger:
                    ours, theirs = _round(ours), _round(theirs)
                found.append(Comparison(f"{name} {what}", ours, theirs, rival, larger))
    return found


def draw(measured: RecordFile) -> "dict[str, Figure]":
    """Draws the log-likelihoods of each set, measured and published."""
    from matplotlib.figure import Figure

    from tfbbb.plots.style import BLUE, DARK, VERMILION, drawn_axes

    means = Means(measured.records)
    columns = min(3, len(means.sets))
    lines = -(-len(means.sets) // columns)
    figure = Figure(figsize=(4.0 * columns, 3.6 * lines), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False)
    rows = [*means.methods, *means.published]
    for axes, name in zip(grid.flat, means.sets, strict=False):
        drawn_axes(axes)
        for place, method in enumerate(rows):
            if method in means.published:
                value = means.published_value(name, method, "log_likelihood")
                error, color = np.nan, DARK
            else:
                values = means.values(name, method, "log_likelihood").values()
                value, error = mean_and_error(values)
                color = VERMILION if method == "default" else BLUE
            if value is not None and np.isfinite(value):
                error = error if np.isfinite(error) else 0.0
                axes.errorbar(value, place, xerr=error, fmt="o", ms=4, color=color)
        axes.set_yticks(range(len(rows)), rows, fontsize="small")
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_title(name, fontsize="medium")
        axes.set_xlabel("log-likelihood, nats per row")
    for axes in grid.flat[len(means.sets) :]:
        axes.remove()
    return {"": figure}


if __name__ == "__main__":
    main()
