"""Progress bars of commands."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

T = TypeVar("T")


def terminal_bar(
    what: str, done: "ProgressColumn", *, is_short: bool = False
) -> "Progress":
    """Returns a progress bar on stderr, which only a terminal shows.

    Nobody sees the bar of short work.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (what, BarColumn(24), done, TimeRemainingColumn())
    shown = console.is_terminal and not is_short
    return Progress(*columns, console=console, transient=True, disable=not shown)


def track_names(names: Sequence[str]) -> Iterable[str]:
    """Yields names of columns, with a progress bar."""
    return _track(names, "columns")


def track_blocks(starts: range) -> Iterable[int]:
    """Yields the first rows of blocks; several blocks get a progress bar."""
    return _track(starts, "rows", disable=len(starts) == 1)


def _track(steps: Sequence[T], what: str, *, disable: bool = False) -> Iterable[T]:
    from rich.console import Console
    from rich.progress import track

    console = Console(file=sys.stderr)
    return track(
        steps, description=what, console=console, transient=True, disable=disable
    )
