"""Training whose loss is not finite."""

import math
import warnings

import keras
import numpy as np

from tfbbb.base.types import Logs


class TrainingDivergedError(ValueError):
    """The loss or the held-out figures of a training are not finite.

    Args:
        learning_rate: The learning rate.
        advice: The remedy.

    Attributes:
        learning_rate: The learning rate.
    """

    def __init__(self, learning_rate: float, advice: str = "lower `learning_rate`"):
        self.learning_rate = learning_rate
        super().__init__(
            "Training diverged: its loss or held-out figures are not finite; "
            f"{advice}. Received: learning_rate={learning_rate:g}"
        )


class FiniteLoss(keras.callbacks.Callback):
    """Stops a training whose loss and weights are not finite, after the epoch.

    One step that is not finite makes the mean over the epoch not finite. The other
    callbacks see this epoch and the end of training before `check` raises. If the
    weights are finite, training may recover: it continues, with a warning. Training
    whose data give no batch fails too.
    """

    _ADVICE = (
        "lower `learning_rate`, or look for inputs, targets or sample weights that are "
        "not finite or far too large"
    )

    def __init__(self) -> None:
        super().__init__()
        self._error: TrainingDivergedError | None = None
        self._steps_before = 0

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self._steps_before = self._steps

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        trained = [name for name in logs or {} if not name.startswith("val_")]
        if not trained and self._steps == self._steps_before:
            raise ValueError(
                f"Epoch {epoch + 1} took no step: the data gave no batch. A generator, "
                "or a dataset over an iterator, is read only once: make it anew for "
                "each `fit`, or let it repeat and pass `steps_per_epoch`. "
                "Received: no batch"
            )
        if math.isfinite((logs or {}).get("loss", 0.0)):
            return
        error = TrainingDivergedError(
            float(self.model.optimizer.learning_rate), self._ADVICE
        )
        if self.model.stop_training or self._weights_are_finite():
            warnings.warn(str(error), stacklevel=2)
        else:
            self._error = error
            self.model.stop_training = True

    def check(self) -> None:
        """Raises the error of a training that this callback has stopped.

        It warns instead if another callback has restored finite weights.
        """
        if self._error is None:
            return
        if not self._weights_are_finite():
            raise self._error
        warnings.warn(str(self._error), stacklevel=3)

    @property
    def _steps(self) -> int:
        return int(self.model.optimizer.iterations.numpy())

    def _weights_are_finite(self) -> bool:
        weights = self.model.trainable_variables
        return all(np.isfinite(weight.numpy()).all() for weight in weights)
