"""Tables on stdout: for people, as JSON, or as CSV; and tables in files."""

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.base.texts import aligned, shown_number
from tfbbb.base.types import JsonObject
from tfbbb.cli.notes import echo_next

if TYPE_CHECKING:
    import pyarrow as pa

AsJson = Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")]
Limit = Annotated[int, typer.Option(min=1, help="Most entries to list.")]

_MAX_ROWS_SHOWN = 20


def print_list(
    entries: Sequence[JsonObject],
    columns: dict[str, str | Callable[[JsonObject], object]],
    *,
    as_json: bool,
    if_none: str,
    then: str,
) -> None:
    """Prints a list, as a table or as JSON; a column is a key or is computed.

    `then` is what to do next with an entry.
    """
    if as_json:
        typer.echo(json.dumps(entries, indent=2))
        return
    if not entries:
        typer.echo(if_none, err=True)
        return
    cells: list[Callable[[JsonObject], object]] = [
        itemgetter(x) if isinstance(x, str) else x for x in columns.values()
    ]
    print_rows([*columns], ([cell(entry) for cell in cells] for entry in entries))
    echo_next(then)


def print_rows(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a table, whose lines a narrow terminal cuts."""
    texts = [["" if x is None else str(x) for x in row] for row in (headings, *rows)]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in aligned(texts):
        typer.echo(line[:width])


def format_time(text: str) -> str:
    """Formats an ISO 8601 time of the service in the local time zone."""
    return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M}"


def output_table(
    predictions: "pa.Table",
    output: Path | None,
    complete: "Callable[[pa.Table], pa.Table]",
) -> None:
    """Writes predictions to a file if one is named, else to stdout.

    A terminal shows the first rows; a pipe gets all rows as CSV.
    """
    from tfbbb.tables.writing import write_csv, write_table

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
