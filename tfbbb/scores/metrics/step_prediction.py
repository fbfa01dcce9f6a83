"""The predictive distribution of a minibatch within a compiled step."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.levels import checked_levels
from tfbbb.prediction.mixture import Mixture


class StepPrediction:
    """A uniform mixture of the likelihoods under the draws of one step.

    Has the attributes of `tfbbb.Predictive`, as float64 tensors that are computed on
    access. The epistemic variance of a single draw is 0.

    The outputs of the network are [rows, S, ..., P], and the mask says whether each
    place of a row counts, [rows, places...]. The metrics of Keras take a tensor, see
    `tfbbb.metrics.compiled`; those of `tfbbb` score `current_call().prediction`.
    """

    def __init__(self, likelihood: Likelihood, outputs: Tensor, mask: Any = None):
        self.mask = mask
        self._likelihood = likelihood
        self._outputs = tf.cast(outputs, tf.float64)
        self._mixture = Mixture(likelihood, self._outputs)

    @property
    def num_samples(self) -> int | None:
        """The number of draws; None if unknown before the step runs."""
        return self._outputs.shape[1]

    @property
    def discrete(self) -> bool:
        """Whether the targets are integers."""
        return self._likelihood.discrete

    @property
    def masses(self) -> tuple[float, ...]:
        """The numbers that have a probability of their own beside a density."""
        return self._likelihood.masses

    @property
    def mean(self) -> tf.Tensor:
        return tf.reduce_mean(self._likelihood.mean(self._outputs), axis=1)

    @property
    def variance(self) -> tf.Tensor:
        return self.epistemic + self.aleatoric

    @property
    def stddev(self) -> tf.Tensor:
        return tf.sqrt(self.variance)

    @property
    def epistemic(self) -> tf.Tensor:
        means = self._likelihood.mean(self._outputs)
        num_samples = tf.cast(tf.shape(means)[1], means.dtype)
        deviations = means - tf.reduce_mean(means, axis=1, keepdims=True)
        squares = tf.reduce_sum(tf.square(deviations), axis=1)
        return tf.math.divide_no_nan(squares, num_samples - 1.0)

    @property
    def aleatoric(self) -> tf.Tensor:
        return tf.reduce_mean(self._likelihood.variance(self._outputs), axis=1)

    @property
    def probabilities(self) -> tf.Tensor:
        if self._likelihood.task != "classification":
            raise AttributeError("`probabilities` is defined for classes only.")
        return tf.reduce_mean(self._likelihood.probabilities(self._outputs), axis=1)

    def log_prob(self, y: ArrayLike) -> tf.Tensor:
        return self._mixture.log_prob(y)

    def cdf(self, y: ArrayLike) -> tf.Tensor:
        self._check_order()
        return self._mixture.cdf(y)

    def quantile(self, p: Sequence[float]) -> tf.Tensor:
        self._check_order()
        levels = checked_levels(p)
        if self.num_samples == 1:
            shape = [len(levels), *[1] * (len(self._outputs.shape) - 2)]
            return self._likelihood.quantile(levels.reshape(shape), self._outputs)
        return self._mixture.quantiles(levels)

    def aligned(self, targets: ArrayLike) -> tf.Tensor:
        """Returns a minibatch's targets in the format of scores.

        That is float64 [rows, ..., k], or class indices [rows, ...].
        """
        targets = self._likelihood.aligned(targets, self._outputs[:, 0])
        is_class = self._likelihood.task == "classification"
        return tf.cast(targets, tf.int32 if is_class else tf.float64)

    def __repr__(self) -> str:
        return f"StepPrediction(likelihood={type(self._likelihood).__name__})"

    def _check_order(self) -> None:
        if not self._likelihood.ordered:
            raise ValueError(
                "Classes without an order have no distribution function and no "
                "quantiles; use `BrierScore` or `ExpectedCalibrationError`. "
                f"Received: likelihood={type(self._likelihood).__name__}"
            )
