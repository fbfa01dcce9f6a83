"""Lists of what there is: for people, and with `--json` for programs."""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.text import Text

AsJson = Annotated[bool, typer.Option("--json", help="Print all there is as JSON.")]
Limit = Annotated[int, typer.Option(min=1, help="How many.")]

# A pipe has no edge at which lines would have to be broken.
_WIDE = 10_000


def put_list(
    entries: Sequence[dict[str, Any]],
    columns: dict[str, Callable[[dict[str, Any]], object]],
    *,
    as_json: bool,
    if_none: str,
) -> None:
    """Prints a list, as a table or as JSON.

    Args:
        entries: What the service tells of each.
        columns: Headings, and what is shown of an entry under them.
        as_json: Whether to print the entries as they are.
        if_none: What is told on stderr of an empty list.
    """
    if as_json:
        typer.echo(json.dumps(entries, indent=2))
        return
    if not entries:
        typer.echo(if_none, err=True)
        return
    shows = columns.values()
    put_rows([*columns], ([show(entry) for show in shows] for entry in entries))


def put_rows(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a table, whose last column is cut where a terminal is too narrow for it.

    Args:
        headings: Headings of the columns.
        rows: What is shown under them; None is left empty.
    """
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in headings:
        # Where it is narrow, the others stay whole.
        table.add_column(heading, no_wrap=heading != headings[-1])
    for row in rows:
        table.add_row(*map(_cell, row))
    width = None if sys.stdout.isatty() else _WIDE
    console = Console(width=width)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


def _cell(value: object) -> "Text":
    from rich.text import Text

    text = "" if value is None else str(value)
    return Text(text, no_wrap=True, overflow="ellipsis")


def time_of(text: str) -> str:
    """A time of the service as that of the clock here."""
    return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M}"
