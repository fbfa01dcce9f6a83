"""A progress bar for `model.fit`."""

from typing import Any

import keras
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

_FIGURES = ("loss", "nll", "kl", "val_nll")


class TrainingProgress(keras.callbacks.Callback):
    """Shows epoch, loss, nll, kl and val_nll while a model trains.

    Args:
        console: Where to show them. What is no terminal gets the last line only.
    """

    def __init__(self, console: Console):
        super().__init__()
        self._progress = Progress(
            TextColumn("epoch"),
            MofNCompleteColumn(),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._figures: dict[str, float] = {}

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._task = self._progress.add_task(
            "", total=self.params["epochs"], figures=""
        )
        self._progress.start()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        # Rows that are held out are not evaluated at every epoch.
        self._figures |= logs or {}
        figures = "  ".join(
            f"{name} {self._figures[name]:.4g}"
            for name in _FIGURES
            if name in self._figures
        )
        self._progress.update(self._task, completed=epoch + 1, figures=figures)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._progress.stop()
