"""Where the rows of a table go that a command has made."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_ROWS_SHOWN = 50


def put_out(table: "pa.Table", output: Path | None) -> None:
    """Writes a table to a file, else shows it on a terminal, else writes it as CSV."""
    from tfbbb.data.writing import write_csv, write_table

    if output is not None:
        write_table(table, output)
        typer.echo(f"{_rows(table.num_rows)} written to {output}", err=True)
    elif sys.stdout.isatty():
        _show(table)
    else:
        write_csv(table, sys.stdout.buffer)


def _show(table: "pa.Table") -> None:
    from rich.console import Console
    from rich.table import Table

    # Headings of several words can be broken into lines.
    headings = (name.replace("_", " ") for name in table.column_names)
    shown = Table("row", *headings)
    for row, values in enumerate(table.slice(0, _MOST_ROWS_SHOWN).to_pylist(), 1):
        cells = (v if isinstance(v, str) else f"{v:.5g}" for v in values.values())
        shown.add_row(str(row), *cells)
    Console(markup=False).print(shown)
    if table.num_rows > _MOST_ROWS_SHOWN:
        more = table.num_rows - _MOST_ROWS_SHOWN
        typer.echo(f"and {_rows(more)} more; --output writes all")


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
