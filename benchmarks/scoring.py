"""Thirty regression tables of registry packages, ranked by proper scores.

    tfbbb benchmark scoring [--sets "Wage (ISLP)"] [--methods default,crepes]

The form is that of ScoringBench (Landsgesell and Knoll 2026): at most 3 000 rows of a
table, drawn with a fixed seed, and five folds at random, without regard to time. The
tables are the regression tables of `strangers.toml` with 100 rows or more that have a
target: a rule that knows no result.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace

from comparisons import Comparison
from program import (
    add_place_options,
    add_table_options,
    argument_parser,
    run_tasks,
    skipped_lines,
)
from records import RecordFile
from strangers import known_tables, read_packages, source_table
from table_sources import FOLDS, SourceTable
from tables import METHODS, compare_tables, measurements, scores_report

LEAST_ROWS, MOST_ROWS = 100, 3000


def main(arguments: Sequence[str] | None = None) -> None:
    """Scores each method on each fold, prints the ranks and writes the records."""
    parser = argument_parser(__doc__)
    add_table_options(parser, METHODS, sets=regression_tables(), splits=FOLDS)
    add_place_options(parser)
    options = parser.parse_args(arguments)
    run_tasks(__file__, options, measure, report)


def regression_tables() -> list[str]:
    """Returns the names of the tables of `strangers.toml` whose target is a number."""
    return [
        name
        for name, entry in known_tables().items()
        if entry.get("task", "regression") == "regression"
    ]


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds one record per table, method and fold."""
    names = options.sets or regression_tables()
    found = read_packages(names)
    tables = [random_table(name, found[f"cells {name}"].item()) for name in names]
    large = [table for table in tables if table.num_rows >= LEAST_ROWS]
    splits = range(1 if options.smoke else options.splits)
    measured.measure_all(measurements(large, options.methods, splits, options.smoke))


def random_table(name: str, text: str) -> SourceTable:
    """Returns a table whose folds are at random."""
    table = source_table(name, known_tables()[name], text, MOST_ROWS)
    return replace(table, is_in_order=False)


def report(measured: RecordFile) -> str:
    """Returns the tables and the ranks, made from the records alone."""
    parts = scores_report(measured.records, METHODS)
    return "\n\n".join([*parts, *skipped_lines(measured)])


def compare(measured: RecordFile) -> list[Comparison]:
    """Returns the default beside the others, by rank and on each table."""
    return compare_tables(measured.records, METHODS)


if __name__ == "__main__":
    main()
