"""Rows beyond those of training: which detector knows them, and what a job says.

    python benchmarks/shift.py --data DIRECTORY [--methods familiarity,lof] [--splits 3]

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
from gap_splits import END, MIDDLE, GapSplit, gap_splits
from program import add_table_options, argument_parser, run
from records import RecordFile
from results import with_error
from timing import markdown_table

OURS, JOB = "familiarity", "job"
# Titles of the places of rows that are left out.
PLACES: Mapping[str, str] = {MIDDLE: "a gap", END: "an end"}
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
    run(__file__, parser.parse_args(arguments), measure, report)


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
    from tfbbb.training.recalibration import prediction_figures

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
            figures = prediction_figures(model.predictive(inputs), targets)
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
    """Returns AUROCs of the detectors and figures of the jobs, by place and set."""
    sets = list(dict.fromkeys(record["set"] for record in measured.records))
    rows = []
    for place, title in PLACES.items():
        of_place = measured.select(place=place)
        for name in [*sets, "all"]:
            records = [r for r in of_place if name in ("all", r["set"])]
            if records:
                rows.append([f"{title}, {name}", *_cells(records)])
    columns = [
        "rows left out of the training",
        *(f"AUROC of {method}" for method in DETECTORS),
        "of the epistemic variance",
        "alarms there, %",
        "alarms at other new rows, %",
        "90 % intervals cover, %",
        "without extrapolation",
        "log-likelihood",
        "without extrapolation",
        "of a constant",
        "width at other new rows, ratio",
    ]
    return markdown_table(columns, rows)


def _cells(records: Sequence[Mapping[str, Any]]) -> list[str]:
    def of(method: str) -> list[Mapping[str, Any]]:
        return [record for record in records if record["method"] == method]

    def gap(figure: str, digits: int, factor: float = 1.0) -> str:
        return with_error([job["gap"][figure] for job in of(JOB)], digits, factor)

    widths = [
        job["outside"]["width_90"] / job["outside"]["width_90_without"]
        for job in of(JOB)
    ]
    return [
        *(with_error([x["auroc"] for x in of(m)], 2) for m in (*DETECTORS, JOB)),
        *(
            with_error([x[name] for x in of(OURS)], 1, 100.0)
            for name in ("alarms", "false_alarms")
        ),
        gap("coverage_90", 1, 100.0),
        gap("coverage_90_without", 1, 100.0),
        gap("log_likelihood", 2),
        gap("log_likelihood_without", 2),
        gap("constant_log_likelihood", 2),
        with_error(widths, 2),
    ]


if __name__ == "__main__":
    main()
