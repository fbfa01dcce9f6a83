"""Rows after those of the training: how jobs cover them, by how they leave rows out.

    python benchmarks/time_splits.py [--sets "Wage (ISLP)"] [--methods order,random]

Each split trains on the first rows in time and tests on the next fifth of the table:
the first split tests on the last fifth, the second on the fifth before, and so on. The
tables are those of `strangers` that have a time, a target of numbers and more columns.
"""

import argparse
import functools
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from package_tables import (
    SourceTable,
    known_tables,
    named,
    read_packages,
    source_table,
)
from program import (
    add_place_options,
    add_table_options,
    argument_parser,
    run,
)
from records import Measurement, RecordFile
from results import with_error
from timing import markdown_table

SETS = (
    "Auto (ISLP, .data)",
    "Bikeshare (ISLP)",
    "NYSE (ISLP)",
    "Wage (ISLP)",
    "Weather (mosaicData)",
)
# How a job leaves rows out: by order, the last rows from all members, or at random.
METHODS = {
    "order": ("time",),
    "held out": ("time", "fraction"),
    "random": (),
}
_FRACTION = 0.1
_SPLITS = 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains the jobs, and prints the table of figures."""
    parser = argument_parser(__doc__)
    add_table_options(parser, list(METHODS), sets=SETS, splits=_SPLITS)
    add_place_options(parser)
    run(__file__, parser.parse_args(arguments), measure, report)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds the records that the file lacks, the last fifth of each set first."""
    names = options.sets or SETS
    found = read_packages(names)
    entries = known_tables()
    wanted = []
    for number in range(1 if options.smoke else options.splits):
        for name in names:
            table = source_table(name, entries[name], found[f"cells {name}"].item())
            time = named(entries[name]["time"], list(table.columns))
            wanted += measurements(table, time, number, options)
    measured.measure_all(wanted)


def measurements(
    table: SourceTable, time: str, number: int, options: argparse.Namespace
) -> list[Measurement]:
    """Returns the measurements of one split of a table."""
    found = []
    for method in options.methods:
        given = {"time": time, "fraction": _FRACTION}
        validation = {name: given[name] for name in METHODS[method]}
        spec: dict[str, Any] = {"target": table.target}
        spec["training"] = {"validation": validation}
        if options.smoke:
            spec["training"]["epochs"] = 20
        found.append(
            Measurement(
                {"set": table.name, "split": number, "method": method},
                functools.partial(figures, table, number, spec),
                {"data": table.digest, "spec": json.loads(json.dumps(spec))},
                None,
            )
        )
    return found


def rows_in_time(num_rows: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rows for training and those of the test, a fifth of all rows."""
    cuts = np.round(np.arange(6) / 5 * num_rows).astype(int)
    last = 5 - number
    return np.arange(cuts[last - 1]), np.arange(cuts[last - 1], cuts[last])


def figures(table: SourceTable, number: int, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Trains a job on the rows before the test; returns figures of the test."""
    from tfbbb.tables import read_table
    from tfbbb.training import train_table
    from tfbbb.training.recalibration import prediction_figures

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        path.write_text(table.text(range(table.num_rows)), "utf-8")
        whole = read_table(path)
    training, test = rows_in_time(table.num_rows, number)
    trained = train_table(whole.take(training), spec)
    taken = whole.take(test)
    inputs, targets = trained.schema.inputs(taken), trained.schema.targets(taken)
    found = prediction_figures(trained.model.predictive(inputs), targets)
    lower, upper = trained.model.predictive(inputs).interval(0.9)
    return {
        "rows": len(test),
        **{name: found[name] for name in ("coverage_90", "rmse", "log_likelihood")},
        "width_90": float(np.mean(upper - lower)),
        "coverage_90_left_out": trained.metrics["coverage_90"],
    }


def report(measured: RecordFile) -> str:
    """Returns the coverage and the errors of later rows, by table and method."""
    sets = [*dict.fromkeys(record["set"] for record in measured.records)]
    rows = []
    for name in sets:
        for method in METHODS:
            found = measured.select(set=name, method=method)
            if found:
                rows.append([name, method, *_cells(found)])
    for method in METHODS:
        of_method = measured.select(method=method)
        if len(sets) > 1 and of_method:
            # Errors and widths of the tables are of other units.
            rows.append(["all tables", method, *_cells(of_method)[:3], "", "", ""])
    columns = [
        "table",
        "rows left out",
        "90 % intervals cover, %",
        "farthest from 90 %",
        "of rows left out, %",
        "RMSE",
        "log-likelihood",
        "width",
    ]
    return markdown_table(columns, rows)


def _cells(records: Sequence[Mapping[str, Any]]) -> list[str]:
    covered = [record["coverage_90"] for record in records]
    farthest = max(covered, key=lambda share: abs(share - 0.9))
    scores = ("rmse", "log_likelihood", "width_90")
    return [
        with_error(covered, 1, 100.0),
        f"{100 * farthest:.1f}",
        with_error([record["coverage_90_left_out"] for record in records], 1, 100.0),
        *(with_error([record[score] for record in records]) for score in scores),
    ]


if __name__ == "__main__":
    main()
