"""Output of a table: to a file, to the terminal or as CSV to stdout."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_ROWS_SHOWN = 50


def output_table(table: "pa.Table", output: Path | None) -> None:
    """Writes a table to a file if one is named, else to stdout.

    A terminal shows the first rows; a pipe gets all rows as CSV.
    """
    from tfbbb.data.writing import write_csv, write_table

    if output is not None:
        write_table(table, output)
        typer.echo(f"{_count_rows(table.num_rows)} written to {output}", err=True)
    elif sys.stdout.isatty():
        _print_first_rows(table)
    else:
        write_csv(table, sys.stdout.buffer)


def _print_first_rows(table: "pa.Table") -> None:
    from rich.console import Console
    from rich.table import Table

    # Rich breaks lines at spaces, not at underscores.
    headings = (name.replace("_", " ") for name in table.column_names)
    shown = Table("row", *headings)
    for row, values in enumerate(table.slice(0, _MAX_ROWS_SHOWN).to_pylist(), 1):
        cells = (v if isinstance(v, str) else f"{v:.5g}" for v in values.values())
        shown.add_row(str(row), *cells)
    Console(markup=False).print(shown)
    if table.num_rows > _MAX_ROWS_SHOWN:
        more = table.num_rows - _MAX_ROWS_SHOWN
        typer.echo(f"and {_count_rows(more)} more; --output writes all rows to a file")


def _count_rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
