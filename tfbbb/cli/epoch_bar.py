"""A progress bar of training."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

_FIGURES = ("loss", "nll", "kl", "val_nll", "change")


class EpochBar:
    """A progress bar with epoch, loss, nll, kl and val_nll, or the change in a round.

    The figures come from training: each step computes them from one draw of the
    weights.

    Args:
        console: Shows the bar. A console that is not a terminal gets only the last
            line.
    """

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("epoch"),
            MofNCompleteColumn(),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._progress.add_task("", visible=False, figures="")
        self._figures: dict[str, float] = {}
        self._stage = ""

    def show(
        self,
        epoch: int,
        epochs: int,
        figures: Mapping[str, float | None],
        stage: str = "",
    ) -> None:
        """Moves the bar.

        Args:
            epoch: Number of completed epochs.
            epochs: Total number of epochs.
            stage: What is being done; printed above the bar when it changes.
            figures: New figures. The bar keeps the last value of a figure that is
                absent or None: not every epoch evaluates the held-out rows.
        """
        if stage and stage != self._stage:
            self._stage = stage
            self.print(stage)
        known = {name: figures[name] for name in _FIGURES if name in figures}
        self._figures |= {k: v for k, v in known.items() if v is not None}
        shown = "  ".join(
            f"{name} {self._figures[name]:.4g}"
            for name in _FIGURES
            if name in self._figures
        )
        self._progress.update(
            self._task, completed=epoch, total=epochs, figures=shown, visible=True
        )

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
