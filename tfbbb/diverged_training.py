"""Training whose loss leaves the finite numbers."""

import math
from typing import Any

import keras


class TrainingDivergedError(ValueError):
    """Training came to a loss or to held-out figures that are not finite."""

    def __init__(self, learning_rate: float):
        super().__init__(
            "Training diverged: its loss or held-out figures are not finite; lower "
            f"`learning_rate`. Received: learning_rate={learning_rate:g}"
        )


class StopWhereDiverged(keras.callbacks.Callback):
    """Ends training after an epoch whose loss is not finite.

    Steps after it could not bring the weights back.

    Attributes:
        diverged: Whether there was such an epoch.
    """

    def __init__(self) -> None:
        super().__init__()
        self.diverged = False

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs and not math.isfinite(logs["loss"]):
            self.diverged = True
            self.model.stop_training = True
