"""Lists on stdout: a table for people, JSON for programs with `--json`."""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.base.types import JsonObject

if TYPE_CHECKING:
    from rich.text import Text

AsJson = Annotated[
    bool, typer.Option("--json", help="Print every field of the entries as JSON.")
]
Limit = Annotated[int, typer.Option(min=1, help="Most entries to list.")]

# A pipe has no width, so its lines are not cut.
_PIPE_WIDTH = 10_000


def print_list(
    entries: Sequence[JsonObject],
    columns: dict[str, Callable[[JsonObject], object]],
    *,
    as_json: bool,
    if_none: str,
) -> None:
    """Prints a list, as a table or as JSON."""
    if as_json:
        typer.echo(json.dumps(entries, indent=2))
        return
    if not entries:
        typer.echo(if_none, err=True)
        return
    cells = columns.values()
    print_rows([*columns], ([cell(entry) for cell in cells] for entry in entries))


def print_rows(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a table. A narrow terminal cuts the table's last column."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in headings:
        # Only the last column shrinks on a narrow terminal.
        table.add_column(heading, no_wrap=heading != headings[-1])
    for row in rows:
        table.add_row(*map(_format_cell, row))
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    console = Console(width=width)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


def _format_cell(value: object) -> "Text":
    from rich.text import Text

    text = "" if value is None else str(value)
    return Text(text, no_wrap=True, overflow="ellipsis")


def format_time(text: str) -> str:
    """Formats an ISO 8601 time of the service in the local time zone."""
    return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M}"
