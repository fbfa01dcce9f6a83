"""Calibration of the answers to new rows: coverage of intervals and sets, by groups.

    python benchmarks/calibration.py --data DIR [--sets yacht] [--splits 5]

DIR holds tables with splits as for `uci`, and tables of classes `SET.npz` with `x` and
`y`. Each method is a job with a target and this `recalibration` alone; the test rows
are new to it. The groups are thirds of a column: that with the most values.
"""

import argparse
import functools
import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from program import (
    DataError,
    add_table_options,
    argument_parser,
    failures_skipped,
    run,
)
from records import RecordFile
from results import with_error
from standard_splits import find_tables
from timing import markdown_table

if TYPE_CHECKING:
    import pyarrow as pa

METHODS = {
    "none": "none",
    "auto": "auto",
    "auto by groups": {"name": "auto", "by": "third"},
}
_LEVELS = (50, 90, 95)
_THIRDS = ("low", "middle", "high")
_CLASS_SPLITS = 20
_SMOKE_ROWS = 300
# Coverage of the 90 % intervals in the worst group of a set, over all splits.
_LEAST_OF_GROUPS = 86
# Fewer test rows of a group say little: the standard error is 3 % or more.
_LEAST_ROWS = 100


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures each method on each split, prints the tables and writes the records."""
    parser = argument_parser(__doc__)
    add_table_options(parser, tuple(METHODS))
    run(__file__, parser.parse_args(arguments), measure, report)


@dataclass(frozen=True)
class Case:
    """A set with the training and test rows of its splits."""

    name: str
    task: str
    x: np.ndarray
    y: np.ndarray
    splits: tuple[tuple[np.ndarray, np.ndarray], ...]

    @property
    def digest(self) -> str:
        """Identifies the rows."""
        found = hashlib.sha256(np.ascontiguousarray(self.x).tobytes())
        return found.hexdigest()[:12]

    def table(self, rows: np.ndarray) -> "pa.Table":
        """Returns rows as a table with the column of the groups."""
        import pyarrow as pa

        columns = {f"x{i}": self.x[rows, i] for i in range(self.x.shape[1])}
        y = self.y[rows]
        target = [str(label) for label in y] if self.task == "classification" else y
        return pa.table({**columns, "third": self.thirds[rows], "target": target})

    @functools.cached_property
    def thirds(self) -> np.ndarray:
        """The group of each row: a third of the column with the most values."""
        distinct = [len(np.unique(column)) for column in self.x.T]
        column = self.x[:, int(np.argmax(distinct))]
        bounds = np.quantile(column, [1 / 3, 2 / 3])
        return np.array(_THIRDS)[np.searchsorted(bounds, column)]


def find_cases(directory: Path, names: Sequence[str] | None) -> list[Case]:
    """Returns the sets of a directory."""
    cases = [*_classes(directory), *_numbers(directory)]
    found = {case.name: case for case in cases}
    missing = [name for name in names or () if name not in found]
    if not found or missing:
        raise DataError(
            "The data directory must hold tables with splits as for `uci`, or tables "
            "of classes SET.npz with the arrays x and y; it has "
            f"{', '.join(sorted(found)) or 'neither'}. Received: {directory}"
        )
    return [found[name] for name in names or sorted(found, key=str.lower)]


def _numbers(directory: Path) -> Iterator[Case]:
    try:
        tables = find_tables(directory)
    except DataError:
        return
    for table in tables:
        splits = (table.split(index) for index in range(table.num_splits))
        parts = tuple((split.train, split.test) for split in splits)
        yield Case(table.name, "regression", table.x, table.y, parts)


def _classes(directory: Path) -> Iterator[Case]:
    for path in sorted(directory.glob("*.npz")):
        with np.load(path, allow_pickle=False) as archive:
            # Not of images, nor of several tables.
            if not {"x", "y"} <= set(archive.files) or archive["x"].ndim != 2:
                continue
            x, y = archive["x"].astype(float), archive["y"]
        # A constant column tells nothing.
        x = x[:, x.std(axis=0) > 0]
        orders = [
            np.random.default_rng(i).permutation(len(y)) for i in range(_CLASS_SPLITS)
        ]
        parts = tuple((o[len(y) // 10 :], o[: len(y) // 10]) for o in orders)
        yield Case(path.stem, "classification", x, y, parts)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds one record per set, split and method."""
    cases = find_cases(options.data, options.sets)
    most = max(len(case.splits) for case in cases)
    # A run that is killed early has some splits of every set.
    for split in range(most)[: 1 if options.smoke else options.splits]:
        for case in (case for case in cases if split < len(case.splits)):
            for method in options.methods:
                measured.measure(
                    {"set": case.name, "method": method, "split": split},
                    functools.partial(
                        score, case, split, method, epochs=2 if options.smoke else None
                    ),
                    settings={"data": case.digest},
                    seed=split,
                )


def score(case: Case, split: int, method: str, epochs: int | None) -> dict[str, Any]:
    """Trains a job on the training rows of a split and scores the test rows."""
    from tfbbb.training import train_table

    train, test = case.splits[split]
    if epochs is not None:
        train = train[:_SMOKE_ROWS]
    spec: dict[str, Any] = {"target": "target", "recalibration": METHODS[method]}
    if epochs is not None:
        spec["training"] = {"epochs": epochs}
    start = time.perf_counter()
    with failures_skipped():
        trained = train_table(case.table(train), spec)
    seconds = time.perf_counter() - start
    table = case.table(test)
    inputs, targets = trained.schema.inputs(table), trained.schema.targets(table)
    prediction = trained.model.predictive(inputs)
    found: dict[str, Any] = {
        "log_likelihood": float(np.mean(prediction.log_prob(targets))),
        "chosen": trained.recalibration_choice["chosen"],
    }
    for percent in _LEVELS:
        inside, sizes = answers(prediction, targets, percent / 100)
        found[f"coverage_{percent}"] = float(inside.mean())
        found[f"size_{percent}"] = float(sizes.mean())
        if percent == 90:
            thirds = case.thirds[test]
            for name in _THIRDS:
                found[f"covered_{name}"] = int(inside[thirds == name].sum())
                found[f"rows_{name}"] = int((thirds == name).sum())
    return {**found, "seconds": seconds}


def answers(
    prediction: Any, targets: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Returns whether intervals or sets contain the targets, and their sizes."""
    if hasattr(prediction, "probabilities"):
        members = prediction.prediction_set(level)
        inside = members[np.arange(len(targets)), targets]
        return inside, members.sum(axis=1)
    lower, upper = prediction.interval(level)
    inside = (lower <= targets) & (targets <= upper)
    return inside[:, 0], (upper - lower)[:, 0]


def report(measured: RecordFile) -> str:
    """Returns the coverage of new rows, and of the worst third, by set and method."""
    methods = [name for name in METHODS if measured.select(method=name)]
    sets = sorted({record["set"] for record in measured.records}, key=str.lower)
    rows = []
    for name in sets:
        cells = []
        for method in methods:
            found = measured.select(set=name, method=method)
            worst = worst_group(found)
            cells += [
                with_error([r["coverage_90"] for r in found], 1, 100.0),
                "" if worst is None else f"{100 * worst:.1f}",
                with_error([r["log_likelihood"] for r in found], 3),
            ]
        rows.append([name, *cells])
    columns = [
        f"{method}: {what}"
        for method in methods
        for what in ("cover, %", "worst third, %", "log-likelihood")
    ]
    table = markdown_table(["set", *columns], rows)
    return (
        f"{table}\n\nIntervals and sets of 90 %. Of the thirds with {_LEAST_ROWS} test "
        "rows or more, over all splits, the worst one counts; the target is "
        f"{_LEAST_OF_GROUPS} %."
    )


def worst_group(records: Sequence[dict[str, Any]]) -> float | None:
    """Returns the least coverage of a group over some records; None without rows."""
    shares = []
    for name in _THIRDS:
        rows = sum(record[f"rows_{name}"] for record in records)
        if rows >= _LEAST_ROWS:
            covered = sum(record[f"covered_{name}"] for record in records)
            shares.append(covered / rows)
    return min(shares, default=None)


if __name__ == "__main__":
    main()
