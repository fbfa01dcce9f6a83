"""The progress bar of a run of tasks."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class TaskBar:
    """One bar for all tasks, on stderr.

    Args:
        name: What the tasks are; None for no bar.
        total: Number of tasks.
    """

    def __init__(self, name: str | None, total: int) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            MofNCompleteColumn(),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[last]}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=name is None or not total,
        )
        self._task = self._progress.add_task(name or "", total=total, last="")

    def advance(self, key: str) -> None:
        """Counts a task that is done."""
        self._progress.update(self._task, advance=1, last=key)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()
