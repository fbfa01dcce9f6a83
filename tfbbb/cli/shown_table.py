"""Output of a table: to a file, to the terminal or as CSV to stdout."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tfbbb.base.texts import shown_number

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_ROWS_SHOWN = 50


def output_table(
    predictions: "pa.Table",
    output: Path | None,
    complete: "Callable[[pa.Table], pa.Table]" = lambda table: table,
    *,
    rounded: bool = False,
) -> None:
    """Writes predictions to a file if one is named, else to stdout.

    A terminal shows the first rows; a pipe gets all rows as CSV. Predictions have
    sensible digits, but those in a Parquet file have all of them.
    """
    from tfbbb.tables.writing import write_csv, write_table

    if not rounded:
        predictions = with_digits_for(output, predictions)
    table = complete(predictions)
    if output is not None:
        write_table(table, output)
        typer.echo(f"{_count_rows(table.num_rows)} written to {output}", err=True)
    elif sys.stdout.isatty():
        _print_first_rows(table)
    else:
        write_csv(table, sys.stdout.buffer)


def with_digits_for(output: Path | None, predictions: "pa.Table") -> "pa.Table":
    """Rounds predictions to sensible digits, unless the output keeps all digits."""
    from tfbbb.tables.writing import keeps_all_digits, with_sensible_digits

    if output is not None and keeps_all_digits(output):
        return predictions
    return with_sensible_digits(predictions)


def _print_first_rows(table: "pa.Table") -> None:
    from rich.console import Console
    from rich.table import Table

    # Rich breaks lines at spaces, not at underscores.
    headings = (name.replace("_", " ") for name in table.column_names)
    shown = Table("row", *headings)
    for row, values in enumerate(table.slice(0, _MAX_ROWS_SHOWN).to_pylist(), 1):
        shown.add_row(str(row), *map(_as_cell, values.values()))
    Console(markup=False).print(shown)
    if table.num_rows > _MAX_ROWS_SHOWN:
        more = table.num_rows - _MAX_ROWS_SHOWN
        typer.echo(f"and {_count_rows(more)} more; --output writes all rows to a file")


def _as_cell(value: object) -> str:
    if value is None:
        return ""
    return shown_number(value, 5) if isinstance(value, float) else str(value)


def _count_rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
