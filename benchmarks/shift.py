"""Rows beyond those of training: which detector knows them, and what a job says.

    tfbbb benchmark shift --data DIRECTORY [--methods familiarity,lof] [--splits 3]

Each split takes the rows in the middle third of one column, or in the upper or lower
third, out of the training rows. Detectors tell these rows from other new rows, and the
default job predicts both.
"""

import functools
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from comparisons import Comparison
from gap_splits import END, MIDDLE, GapSplit, gap_splits
from program import (
    add_table_options,
    argument_parser,
    mean_and_error,
    run,
    with_error,
)
from records import RecordFile
from timing import markdown_table

OURS, JOB = "familiarity", "job"
# Titles of the places of rows that are left out.
PLACES: Mapping[str, str] = {MIDDLE: "a gap", END: "an end"}
# The coverage of 90 % intervals that is aimed at in a gap.
_LEAST_IN_GAP = 0.85
# What takes training rows, and returns scores of other rows, larger for unlike ones.
Detector = Callable[[np.ndarray], Callable[[np.ndarray], np.ndarray]]


def _familiarity(train: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    from tfbbb import Familiarity

    familiarity = Familiarity.fit(train)
    return lambda rows: 1.0 - familiarity(rows).numpy()


def _of_sklearn(name: str, **options: Any) -> Detector:
    """Returns a detector of scikit-learn, of standardised columns, else at defaults."""

    def fit(train: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        from sklearn.ensemble import IsolationForest
        from sklearn.neighbors import LocalOutlierFactor
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import OneClassSVM

        kinds = (IsolationForest, LocalOutlierFactor, OneClassSVM)
        (kind,) = (kind for kind in kinds if kind.__name__ == name)
        fitted = make_pipeline(StandardScaler(), kind(**options)).fit(train)
        return lambda rows: -fitted.score_samples(rows)

    return fit


DETECTORS: Mapping[str, Detector] = {
    OURS: _familiarity,
    "lof": _of_sklearn("LocalOutlierFactor", novelty=True),
    "isolation_forest": _of_sklearn("IsolationForest", random_state=0),
    "one_class_svm": _of_sklearn("OneClassSVM"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures the gaps, and prints the tables of figures."""
    parser = argument_parser(__doc__)
    add_table_options(parser, [*DETECTORS, JOB])
    options = parser.parse_args(arguments)
    run(__file__, options, lambda found: measure(found, options), report)


def measure(measured: RecordFile, options: Any) -> None:
    """Adds the records that the file lacks, the first split of each set first."""
    spec: dict[str, Any] = {"target": "y"}
    if options.smoke:
        spec["training"] = {"epochs": 20}
    by_place = {place: gap_splits(options.data, place) for place in PLACES}
    sets = list(by_place[MIDDLE])
    longest = max(len(x) for found in by_place.values() for x in found.values())
    most = 1 if options.smoke else options.splits or longest
    for number, name, place in itertools.product(range(most), sets, PLACES):
        splits = by_place[place][name]
        if number < len(splits) and name in (options.sets or sets):
            split = splits[number]
            for method in options.methods:
                settings: dict[str, Any] = {"data": split.digest}
                figures = functools.partial(detector_figures, split, method)
                if method == JOB:
                    settings["spec"] = spec
                    figures = functools.partial(gap_figures, split, spec)
                key = {"set": name, "place": place, "split": number, "method": method}
                measured.measure(key, figures, settings=settings, seed=None)


def detector_figures(split: GapSplit, method: str) -> dict[str, Any]:
    """Returns how a detector tells the rows of a gap from other new rows."""
    from sklearn.metrics import roc_auc_score

    rows = split.data[:, split.features].astype(np.float32)
    begin = time.perf_counter()
    score = DETECTORS[method](rows[split.train])
    outside, gap = score(rows[split.outside]), score(rows[split.gap])
    seconds = time.perf_counter() - begin
    is_gap = np.repeat([0, 1], [len(outside), len(gap)])
    found: dict[str, Any] = {
        "auroc": float(roc_auc_score(is_gap, np.r_[outside, gap])),
        "seconds": seconds,
    }
    if method == OURS:
        found["false_alarms"] = float(np.mean(outside >= 0.95))
        found["alarms"] = float(np.mean(gap >= 0.95))
    return found


def gap_figures(split: GapSplit, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Trains a job outside the gap; returns figures of rows outside and inside.

    Those that end in `_without` are of the same model without its extrapolation.
    """
    import pyarrow as pa

    from tfbbb.scores.metrics import out_of_distribution_auroc
    from tfbbb.training import train_table
    from tfbbb.training.held_out import held_out_figures

    columns = {f"x{column}": split.data[:, column] for column in split.features}
    table = pa.table({**columns, "y": split.data[:, split.target]})
    trained = train_table(table.take(split.train), spec)
    mean, stddev = (f(split.data[split.train, split.target]) for f in (np.mean, np.std))
    found: dict[str, Any] = {}
    predictions = {}
    model, extrapolation = trained.model, trained.model.extrapolation
    for part, rows in (("outside", split.outside), ("gap", split.gap)):
        taken = table.take(rows)
        inputs, targets = trained.schema.inputs(taken), trained.schema.targets(taken)
        constant = -0.5 * np.square((targets - mean) / stddev) - np.log(
            stddev * np.sqrt(2.0 * np.pi)
        )
        found[part] = {"rows": len(rows), "constant_log_likelihood": constant.mean()}
        for name, widening in (("", extrapolation), ("_without", None)):
            model.extrapolation = widening
            prediction = model.predictive(inputs)
            low, high = prediction.interval(0.9)
            figures = held_out_figures(model, inputs, targets)
            found[part] |= {
                f"epistemic_stddev{name}": float(np.sqrt(prediction.epistemic.mean())),
                f"log_likelihood{name}": figures["log_likelihood"],
                f"coverage_90{name}": figures["coverage_90"],
                f"width_90{name}": float(np.mean(high - low)),
                f"rmse{name}": figures["rmse"],
            }
            predictions.setdefault(part, prediction)
    found["auroc"] = out_of_distribution_auroc(
        predictions["outside"], predictions["gap"], by="epistemic"
    )
    return found


def report(measured: RecordFile) -> str:
    """Returns the tables of detectors and of jobs, for each place."""
    parts = []
    for place in PLACES:
        records = measured.select(place=place)
        parts += [_report_detectors(records, place), _report_jobs(records, place)]
    return "\n\n".join(part for part in parts if part)


def _report_detectors(records: list[dict[str, Any]], place: str) -> str:
    sets = list(dict.fromkeys(record["set"] for record in records))
    rows = []
    for method in [*DETECTORS, JOB]:
        found = [record for record in records if record["method"] == method]
        if not found:
            continue
        by_set = [[x["auroc"] for x in found if x["set"] == name] for name in sets]
        every = [record["auroc"] for record in found]
        title = "epistemic variance of the job" if method == JOB else method
        rows.append(
            [
                f"{title}, {len(found)} splits",
                *(with_error(values, 3) for values in [*by_set, every]),
                f"{min(every):.2f}",
            ]
        )
    title = f"AUROC of {PLACES[place]} against other new rows"
    columns = [title, *sets, "all", "worst"]
    table = markdown_table(columns, rows) if rows else ""
    ours = [record for record in records if record["method"] == OURS]
    if not ours:
        return table
    false, true = (with_error([x[name] for x in ours], 1, 100.0) for name in _ALARMS)
    return (
        f"{table}\n\nA familiarity of .05 or less have {false} % of the other new rows "
        f"and {true} % of those in {PLACES[place]}."
    )


_ALARMS = "false_alarms", "alarms"


def _report_jobs(records: list[dict[str, Any]], place: str) -> str:
    records = [record for record in records if record["method"] == JOB]
    if not records:
        return ""
    rows = []
    for name in dict.fromkeys(record["set"] for record in records):
        found = [record for record in records if record["set"] == name]
        rows.append([name, f"{len(found)}", *_gap_cells(found)])
    if len(rows) > 1:
        rows.append(["all", f"{len(records)}", *_gap_cells(records)])
    columns = [
        "default job",
        "splits",
        f"90 % intervals cover in {PLACES[place]}, %",
        "without extrapolation, %",
        "other new rows, %",
        f"log-likelihood in {PLACES[place]}",
        "without",
        "of a constant",
        "other new rows",
        "without",
        "their width, ratio",
    ]
    worse = sum(
        record["gap"]["log_likelihood"] < record["gap"]["constant_log_likelihood"]
        for record in records
    )
    return (
        f"{markdown_table(columns, rows)}\n\nThe log-likelihood is below that of a "
        f"constant in {worse} of {len(records)} splits."
    )


def _gap_cells(records: list[dict[str, Any]]) -> list[str]:
    def cell(part: str, figure: str, digits: int = 2, factor: float = 1.0) -> str:
        values = [record[part][figure] for record in records]
        return with_error(values, digits, factor)

    widths = [
        record["outside"]["width_90"] / record["outside"]["width_90_without"]
        for record in records
    ]
    return [
        cell("gap", "coverage_90", 1, 100.0),
        cell("gap", "coverage_90_without", 1, 100.0),
        cell("outside", "coverage_90", 1, 100.0),
        cell("gap", "log_likelihood"),
        cell("gap", "log_likelihood_without"),
        cell("gap", "constant_log_likelihood"),
        cell("outside", "log_likelihood", 3),
        cell("outside", "log_likelihood_without", 3),
        with_error(widths, 3),
    ]


def compare(measured: RecordFile) -> list[Comparison]:
    """Compares familiarity with other detectors, and coverage in gaps with an aim."""
    sets = dict.fromkeys(record["set"] for record in measured.records)
    return [
        comparison
        for name, place in itertools.product(sets, PLACES)
        if measured.select(set=name, place=place, method=OURS)
        for comparison in _compare_place(measured, name, place)
    ]


def _compare_place(measured: RecordFile, name: str, place: str) -> list[Comparison]:
    found = []
    by_method = {
        method: {
            x["split"]: x for x in measured.select(set=name, place=place, method=method)
        }
        for method in [*DETECTORS, JOB]
    }
    ours = by_method.pop(OURS)
    for method, theirs in by_method.items():
        common = sorted(ours.keys() & theirs.keys())
        if not common:
            continue
        pairs = [(ours[k]["auroc"], theirs[k]["auroc"]) for k in common]
        mine, other = np.mean(pairs, axis=0)
        _, error = mean_and_error([a - b for a, b in pairs])
        rival = "epistemic variance" if method == JOB else method
        title = f"AUROC of {PLACES[place]}"
        found.append(Comparison(title, name, mine, other, rival, error=error))
    parts = [x["gap"] for x in by_method[JOB].values()]
    if not parts:
        return found
    mean, error = mean_and_error([part["coverage_90"] for part in parts])
    title = f"coverage in {PLACES[place]}"
    found.append(Comparison(title, name, mean, _LEAST_IN_GAP, "the aim", error=error))
    figures = ("log_likelihood", "constant_log_likelihood")
    mine, constant = np.array([[part[x] for x in figures] for part in parts]).T
    _, error = mean_and_error(mine - constant)
    title = f"log-likelihood in {PLACES[place]}"
    means = mine.mean(), constant.mean()
    found.append(Comparison(title, name, *means, "a constant", error=error))
    return found


if __name__ == "__main__":
    main()
