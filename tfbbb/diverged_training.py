"""Training whose loss is not finite."""

import math
import warnings
from typing import Any

import keras
import numpy as np


class TrainingDivergedError(ValueError):
    """Training came to a loss or to held-out figures that are not finite.

    Args:
        learning_rate: The learning rate.
        advice: What to do about it.
    """

    def __init__(self, learning_rate: float, advice: str = "lower `learning_rate`"):
        super().__init__(
            "Training diverged: its loss or held-out figures are not finite; "
            f"{advice}. Received: learning_rate={learning_rate:g}"
        )


class FiniteLoss(keras.callbacks.Callback):
    """Stops a training whose loss is not finite, at the end of the epoch.

    One step that is not finite makes the mean over the epoch so. It warns where the
    weights are finite, from which training may recover, or where another callback has
    stopped training already.

    Raises:
        TrainingDivergedError: The loss and the weights are not finite.
    """

    _ADVICE = (
        "lower `learning_rate`, or look for inputs, targets or sample weights that are "
        "not finite or far too large"
    )

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        loss = (logs or {}).get("loss", 0.0)
        if math.isfinite(loss):
            return
        error = TrainingDivergedError(
            float(self.model.optimizer.learning_rate), self._ADVICE
        )
        weights = self.model.trainable_variables
        if self.model.stop_training or all(
            np.isfinite(weight.numpy()).all() for weight in weights
        ):
            warnings.warn(str(error), stacklevel=2)
        else:
            raise error
