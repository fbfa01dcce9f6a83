"""Classification tables: the defaults, CatBoost and logistic regression.

    tfbbb benchmark classification --data DIR [--sets pima] [--methods default]

DIR holds some of `mushroom.npz` (`onehot` [rows, columns] and the classes `poisonous`)
and `german_numeric.npz`, `australian.npz`, `pima.npz` and `ionosphere.npz` (`x` [rows,
columns] and the classes `y`). Each split tests a tenth of the rows, drawn by a
generator whose seed is the number of the split.
"""

import argparse
import functools
import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from comparisons import Comparison, compare_methods
from program import (
    DataError,
    add_place_options,
    add_table_options,
    argument_parser,
    decimals,
    failures_skipped,
    run_tasks,
    skipped_lines,
    splits_line,
    values_by_split,
    with_error,
)
from records import Measurement, RecordFile, SkippedError
from scores import class_scores
from table_peers import PEERS, cost, fit
from timing import markdown_table

SETS = ("mushroom", "german_numeric", "australian", "pima", "ionosphere")
METHODS = ("default", "catboost", "logistic_regression")
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "catboost": {"rounds": 2000, "patience": 50, "members": 5},
    "logistic_regression": {"strengths": 20, "folds": 5},
}
SCORES = {
    "log_likelihood": ("Log-likelihood, nats per row", 3, True),
    "accuracy": ("Accuracy, %", 1, True),
    "expected_calibration_error": ("Expected calibration error, 15 bins", 3, False),
    "brier_score": ("Brier score", 3, False),
    "seconds": ("Seconds to fit and predict", 1, False),
}
_SMOKE_ROWS = 120


@dataclass(frozen=True)
class Table:
    """One set: inputs [rows, columns] and classes 0 and 1 [rows]."""

    name: str
    x: np.ndarray
    y: np.ndarray

    @property
    def digest(self) -> str:
        """Identifies the rows."""
        rows = np.ascontiguousarray(np.column_stack([self.x, self.y]))
        return hashlib.sha256(rows.tobytes()).hexdigest()[:12]

    def split(self, seed: int, *, smoke: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Returns training and test rows."""
        order = np.random.default_rng(seed).permutation(len(self.y))
        test, train = np.split(order, [len(order) // 10])
        return train[: _SMOKE_ROWS if smoke else None], test


def main(arguments: Sequence[str] | None = None) -> None:
    """Scores each method on each split, prints the tables and writes the records."""
    parser = argument_parser(__doc__)
    add_table_options(parser, METHODS, sets=SETS, splits=10)
    add_place_options(parser)
    options = parser.parse_args(arguments)
    run_tasks(__file__, options, measure, report)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds one record per set, method and split."""
    tables = find_tables(options.data, options.sets)
    for method in options.methods:
        if method == "catboost":
            try:
                PEERS["catboost"].environment()
            except SkippedError as reason:
                measured.skip({"method": method}, str(reason))
                continue
        by_table = [
            [
                Measurement(
                    {"set": table.name, "method": method, "split": seed},
                    functools.partial(
                        score, method, table, seed=seed, smoke=options.smoke
                    ),
                    {**SETTINGS[method], "data": table.digest},
                    seed,
                )
                for seed in range(1 if options.smoke else options.splits)
            ]
            for table in tables
        ]
        if method == "catboost":
            by_table = measured.without_failing(by_table)
        measured.measure_all(list(chain(*by_table)))


def find_tables(directory: Path, names: Sequence[str] | None = None) -> list[Table]:
    """Returns the sets of a directory."""
    found = []
    for name in names or SETS:
        path = directory / f"{name}.npz"
        if path.exists():
            inputs, classes = (
                ("onehot", "poisonous") if name == "mushroom" else ("x", "y")
            )
            with np.load(path, allow_pickle=False) as arrays:
                x, y = np.asarray(arrays[inputs], float), arrays[classes]
            found.append(Table(name, x, (y == y.max()).astype(int)))
        elif names:
            raise DataError(
                f"The data directory has no {name}.npz; name another directory with "
                f"--data. Received: {directory}"
            )
    if not found:
        raise DataError(
            "The data directory has no table of classes: it must hold some of "
            f"{', '.join(f'{name}.npz' for name in SETS)}; name the directory with "
            f"--data. Received: {directory}"
        )
    return found


def score(method: str, table: Table, *, seed: int, smoke: bool) -> dict[str, Any]:
    """Fits a method to the training rows of a split and scores the test rows."""
    train, test = table.split(seed, smoke=smoke)
    start = time.perf_counter()
    more: dict[str, Any] = {}
    if method == "default":
        probabilities = default_probabilities(table, train, test, smoke=smoke)
    elif method == "logistic_regression":
        probabilities, more = logistic_probabilities(table, train, test)
    else:
        options = SETTINGS[method] | ({"rounds": 20} if smoke else {})
        found = fit(
            method,
            task="classification",
            x_train=table.x[train],
            y_train=table.y[train],
            x_test=table.x[test],
            seed=seed,
            **options,
        )
        probabilities = found["probabilities"]
        more = cost(found)
    more.setdefault("seconds", time.perf_counter() - start)
    return {**class_scores(probabilities, table.y[test]), **more}


def default_probabilities(
    table: Table, train: np.ndarray, test: np.ndarray, *, smoke: bool
) -> np.ndarray:
    """Returns the probabilities [rows, 2] of `train_table` with a target alone.

    `smoke` takes fewer steps.
    """
    import pyarrow as pa

    from tfbbb.training import train_table

    columns = {f"x{i}": table.x[:, i] for i in range(table.x.shape[1])}
    names = np.array(["class 0", "class 1"])
    rows = pa.table({**columns, "target": names[table.y]})
    spec = {"target": "target"} | ({"training": {"steps": 300}} if smoke else {})
    with failures_skipped():
        trained = train_table(rows.take(train), spec)
    prediction = trained.model.predictive(trained.schema.inputs(rows.take(test)))
    order = [list(trained.schema.classes).index(name) for name in names]
    return np.asarray(prediction.probabilities, float)[:, order]


def logistic_probabilities(
    table: Table, train: np.ndarray, test: np.ndarray
) -> tuple[np.ndarray, dict[str, Any]]:
    """Returns the probabilities [rows, 2], and the strength of the penalty."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    options = SETTINGS["logistic_regression"]
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000)),
        {"logisticregression__C": np.geomspace(1e-4, 1e4, options["strengths"])},
        scoring="neg_log_loss",
        cv=options["folds"],
    )
    search.fit(table.x[train], table.y[train])
    chosen = {"C": float(search.best_params_["logisticregression__C"])}
    return search.predict_proba(table.x[test]), {"chosen": chosen}


def report(measured: RecordFile) -> str:
    """Returns the tables, and on how many sets the defaults are ahead."""
    records = measured.records
    parts = []
    for score_name, (title, digits, _) in SCORES.items():
        rows = []
        for method in methods_of(records):
            percent = 100.0 if score_name == "accuracy" else 1.0
            cells = []
            for name in sets_of(records):
                found = values(records, name, method, score_name).values()
                places = digits if percent > 1.0 else max(digits, decimals(found))
                cells.append(with_error(found, places, percent))
            rows.append([method, *cells])
        table = markdown_table(["method", *sets_of(records)], rows)
        parts.append(f"{title}:\n\n{table}")
    parts += [splits_line(records), *skipped_lines(measured)]
    standing = [
        _standing(compare(measured), what) for what in ("log-likelihood", "ECE")
    ]
    parts.append("\n".join(line for line in standing if line))
    return "\n\n".join(part for part in parts if part)


def _standing(found: Sequence[Comparison], what: str) -> str:
    ahead = [not one.lost for one in found if one.name.endswith(what)]
    if not ahead:
        return ""
    return (
        f"- the defaults' {what} is at least as good as that of the better other "
        f"method: {sum(ahead)} of {len(ahead)} sets"
    )


def sets_of(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns the sets that have records."""
    return [name for name in SETS if any(r["set"] == name for r in records)]


def methods_of(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns the methods that have records."""
    return [name for name in METHODS if any(r["method"] == name for r in records)]


def values(
    records: Sequence[Mapping[str, Any]], name: str, method: str, score_name: str
) -> dict[int, float | None]:
    """Returns the scores of a set and a method by split."""
    return values_by_split(records, score_name, set=name, method=method)


def compare(measured: RecordFile) -> list[Comparison]:
    """Returns the defaults beside the other methods."""
    figures = {
        "log-likelihood": ["log_likelihood"],
        "ECE": ["expected_calibration_error"],
        "Brier score": ["brier_score"],
        "seconds": ["seconds"],
    }
    wanted = {title: (names, SCORES[names[0]][2]) for title, names in figures.items()}
    return compare_methods(measured.records, METHODS[1:], wanted)


if __name__ == "__main__":
    main()
