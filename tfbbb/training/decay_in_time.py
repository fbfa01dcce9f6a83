"""A decay of the learning rate that ends with the time, if that ends sooner."""

from collections.abc import Iterator
from contextlib import contextmanager

import keras
import tensorflow as tf
from keras.optimizers.schedules import LearningRateSchedule

from tfbbb.base.types import Tensor


class DecayInTime(LearningRateSchedule):
    """Follows a decay by steps, and skips the part for which there is no time.

    A training that its time limit ends early would stop at a learning rate that is
    still high, where the weights are noisy. So the place in the decay is the step, or
    the same share of the steps as of the time that is used, whichever is greater.

    Args:
        decay: The decay, which ends after `steps` steps.
        steps: Number of steps.
    """

    def __init__(self, decay: LearningRateSchedule, steps: int):
        self._decay, self._steps = decay, steps
        self._skipped = tf.Variable(0.0, trainable=False)

    def __call__(self, step: Tensor) -> Tensor:
        return self._decay(keras.ops.cast(step, "float32") + self._skipped)

    def follow(self, step: int, share: float) -> None:
        """Skips what is missing to a share of the decay."""
        skipped = min(share, 1.0) * self._steps - step
        self._skipped.assign(max(skipped, float(self._skipped.numpy())))

    @contextmanager
    def used_by(self, optimizer: keras.optimizers.Optimizer) -> Iterator[None]:
        """Sets the learning rate of an optimizer, which saved models have as before."""
        optimizer.learning_rate = self
        try:
            yield
        finally:
            optimizer.learning_rate = self._decay
