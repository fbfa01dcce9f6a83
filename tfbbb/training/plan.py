"""Chooses the length, batch size and network of a training if its spec does not."""

from dataclasses import dataclass
from math import ceil
from typing import Any

import keras
import numpy as np

from tfbbb.training.spec import SpecError, TrainingSpec
from tfbbb.training.spec.training import LearningRate

# A third of these steps lowers the held-out log-likelihood on every table tried
# (diabetes, Boston, concrete, energy, wine, yacht).
_STEPS = 6000
_FEWEST_EPOCHS = 10


@dataclass(frozen=True)
class TrainingPlan:
    """The length, batch size and network of a training.

    Attributes:
        epochs: Passes over the training rows.
        batch_size: Rows per step.
        steps_per_epoch: Steps of one pass.
        hidden_units: Units of the hidden layers if the spec has none.
    """

    epochs: int
    batch_size: int
    steps_per_epoch: int
    hidden_units: tuple[int, ...]

    @classmethod
    def from_spec(cls, spec: TrainingSpec, num_rows: int) -> "TrainingPlan":
        """Completes a spec for a number of training rows.

        Raises:
            SpecError: The training ends before its warm-up.
        """
        batch_size = spec.batch_size or _batch_size(num_rows)
        steps_per_epoch = ceil(num_rows / batch_size)
        fewest = max(_FEWEST_EPOCHS, ceil(2 * spec.warmup_epochs))
        epochs = spec.epochs or (
            ceil(spec.steps / steps_per_epoch)
            if spec.steps
            else max(fewest, ceil(_STEPS / steps_per_epoch))
        )
        try:
            spec.check_warmup(epochs)
        except ValueError as error:
            raise SpecError(f"Training would end too soon: {error}.") from None
        return cls(epochs, batch_size, steps_per_epoch, _hidden_units(num_rows))

    @property
    def steps(self) -> int:
        """Number of steps of the whole training."""
        return self.epochs * self.steps_per_epoch

    def learning_rate(self, spec: LearningRate) -> Any:
        """Returns the learning rate as a number or a schedule of Keras."""
        schedules = keras.optimizers.schedules
        if spec.decay == "cosine":
            return schedules.CosineDecay(spec.initial, self.steps)
        if spec.decay == "linear":
            return schedules.PolynomialDecay(spec.initial, self.steps, 0.0)
        return spec.initial


def _hidden_units(num_rows: int) -> tuple[int, ...]:
    # Few rows cannot determine many weights: their posteriors stay wide, and the
    # learned noise absorbs their variance.
    return (20,) if num_rows < 500 else (50,)


def _batch_size(num_rows: int) -> int:
    """Returns the largest power of two with at least 16 batches, from 32 to 256."""
    return int(np.clip(2 ** int(np.log2(num_rows / 16)), 32, 256))
