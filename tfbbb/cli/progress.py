"""Progress bars of commands."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeVar

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    track,
)

from tfbbb.base.texts import time_left
from tfbbb.base.types import JsonObject

T = TypeVar("T")
_FIGURES = ("loss", "nll", "kl", "val_nll", "change")


def terminal_bar(
    what: str, done: ProgressColumn, *, is_short: bool = False
) -> Progress:
    """Returns a progress bar on stderr, which a terminal shows unless work is short."""
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
    console = Console(stderr=True)
    return track(
        steps, description=what, console=console, transient=True, disable=disable
    )


class EpochBar:
    """A progress bar of all stages of a job, with epoch, loss, nll, kl and val_nll.

    The figures come from training: each step computes them from one draw of the
    weights. The timing has the stage and the range of the time that is left.
    """

    def __init__(
        self, console: Console, timing: Callable[[], JsonObject | None]
    ) -> None:
        columns = [
            TextColumn("{task.fields[stage]}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[figures]}"),
            TextColumn("{task.fields[left]}"),
        ]
        self._timing = timing
        self._progress = _AskingProgress(self._ask, *columns, console=console)
        self._task = self._progress.add_task(
            "", visible=False, figures="", stage="", left=""
        )
        self._figures: dict[str, float] = {}
        self._stage = ""

    def show(
        self, epoch: int, figures: Mapping[str, float | None], stage: str = ""
    ) -> None:
        """Shows the epoch and its figures."""
        if stage and stage != self._stage:
            self._stage = stage
            self.print(stage)
        known = {name: figures[name] for name in _FIGURES if name in figures}
        self._figures |= {k: v for k, v in known.items() if v is not None}
        shown = "  ".join(
            [
                f"epoch {epoch}",
                *(
                    f"{name} {self._figures[name]:.4g}"
                    for name in _FIGURES
                    if name in self._figures
                ),
            ]
        )
        self._progress.update(self._task, figures=shown, visible=True)

    def print(self, text: str) -> None:
        """Prints a line above the bar."""
        self._progress.console.print(
            text, markup=False, highlight=False, soft_wrap=True
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        type_: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def _ask(self) -> None:
        if (at := self._timing()) is None:
            return
        self._progress.update(
            self._task,
            # The share never falls, whatever is told.
            completed=max(at["done"], self._progress.tasks[0].completed),
            total=1.0,
            stage=at["stage"],
            left=time_left(at["seconds_left"]),
            visible=True,
        )


class _AskingProgress(Progress):
    """Progress bars that ask what to show, each time that they are drawn."""

    def __init__(self, ask: Callable[[], None], *columns: object, **more: object):
        self._before_drawing = ask
        super().__init__(*columns, **more)  # type: ignore[arg-type]

    def get_renderables(self) -> Iterable[RenderableType]:
        """Asks, and yields the bars."""
        if self.tasks:
            self._before_drawing()
        yield from super().get_renderables()
