"""The predictive distribution of a minibatch within a compiled step."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.levels import checked_levels
from tfbbb.prediction.mixture import Mixture


class StepPrediction(Mixture):
    """A uniform mixture of the likelihoods under the draws of one step.

    Has what scores read of a `tfbbb.Predictive`, as float64 tensors that are computed
    on access. The outputs of the network are [rows, S, ..., P], and the mask says
    whether each place of a row counts, [rows, places...]. The metrics of Keras take a
    tensor, see `tfbbb.metrics.compiled`; those of `tfbbb` score
    `current_call().prediction`.
    """

    def __init__(self, likelihood: Likelihood, outputs: Tensor, mask: Any = None):
        super().__init__(likelihood, tf.cast(outputs, tf.float64))
        self.mask = mask

    @property
    def discrete(self) -> bool:
        """Whether the targets are integers."""
        return self.likelihood.discrete

    @property
    def masses(self) -> tuple[float, ...]:
        """The numbers that have a probability of their own beside a density."""
        return self.likelihood.masses

    @property
    def probabilities(self) -> tf.Tensor:
        if self.likelihood.task != "classification":
            raise AttributeError("`probabilities` is defined for classes only.")
        return tf.reduce_mean(self.likelihood.probabilities(self.outputs), axis=1)

    def cdf(self, y: ArrayLike) -> tf.Tensor:
        self._check_order()
        return super().cdf(y)

    def quantile(self, p: Sequence[float]) -> tf.Tensor:
        self._check_order()
        levels = checked_levels(p)
        if self.outputs.shape[1] == 1:
            shape = [len(levels), *[1] * (len(self.outputs.shape) - 2)]
            return self.likelihood.quantile(levels.reshape(shape), self.outputs)
        return self.quantiles(levels)

    def aligned(self, targets: ArrayLike) -> tf.Tensor:
        """Returns a minibatch's targets in the format of scores.

        That is float64 [rows, ..., k], or class indices [rows, ...].
        """
        targets = self.likelihood.aligned(targets, self.outputs[:, 0])
        is_class = self.likelihood.task == "classification"
        return tf.cast(targets, tf.int32 if is_class else tf.float64)

    def __repr__(self) -> str:
        return f"StepPrediction(likelihood={type(self.likelihood).__name__})"

    def _check_order(self) -> None:
        if not self.likelihood.ordered:
            raise ValueError(
                "Classes without an order have no distribution function and no "
                "quantiles; use `BrierScore` or `ExpectedCalibrationError`. "
                f"Received: likelihood={type(self.likelihood).__name__}"
            )
