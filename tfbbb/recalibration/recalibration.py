"""The contract of a recalibration, and the one that changes nothing."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import tensorflow as tf

from tfbbb.likelihoods import Likelihood
from tfbbb.prediction.mixture import Mixture
from tfbbb.prediction.result import Predictive
from tfbbb.strategy import Strategy


class Recalibration(Strategy):
    """What turns the predictive distribution of a model into a calibrated one.

    It is fitted on held-out rows, fixed from then on, and acts on the *mixture* of the
    likelihoods under the draws, or on the outputs of the network before it. Its methods
    say what a prediction answers; here each answers what the mixture does. All that is
    exported is made of TensorFlow ops.

    Attributes:
        least_rows: Number of rows that a fit needs.
        acts_on_outputs: Whether the outputs of the network are changed.
        central_intervals: Whether intervals lie between two quantiles.
    """

    least_rows: int = 1
    acts_on_outputs: bool = False
    central_intervals: bool = True

    def check(self, likelihood: Likelihood) -> None:
        """Raises ValueError where it cannot recalibrate a likelihood's targets."""

    def fitted(
        self, likelihood: Likelihood, prediction: Predictive, targets: np.ndarray
    ) -> Self:
        """Returns the recalibration of its kind that fits held-out rows best.

        Args:
            likelihood: p(y | outputs).
            prediction: Of these rows, not recalibrated.
            targets: As the likelihood's `check_targets` returns them.
        """
        return self

    def outputs(self, likelihood: Likelihood, outputs: tf.Tensor) -> tf.Tensor:
        """Returns outputs of the network, as the likelihood takes them, changed."""
        return outputs

    def summary(
        self,
        summary: dict[str, Any],
        quantiles: Callable[[np.ndarray], Any],
    ) -> dict[str, Any]:
        """Returns the summary of the recalibrated distribution.

        Args:
            summary: That of the mixture, each [rows, ..., k].
            quantiles: Returns what `quantiles` answers for all rows at levels [Q],
                [rows, Q, ..., k].
        """
        return summary

    def quantiles(self, mixture: Mixture, levels: Any) -> tf.Tensor:
        """Returns quantiles at levels [Q], [rows, Q, ..., k]."""
        return mixture.quantiles(levels)

    def reach(self, level: Any) -> Any:
        """Returns how far intervals reach from the mean, in standard deviations.

        Of levels [...], [..., k]. That is infinitely far for a level of which nothing
        is known, and None where intervals lie between quantiles.
        """
        return None

    def cdf(self, mixture: Mixture, values: Any) -> tf.Tensor:
        """Returns P(y <= values), [rows, ..., k]."""
        return mixture.cdf(values)

    def log_prob(self, mixture: Mixture, targets: Any) -> tf.Tensor:
        """Returns the log density or mass of each row's targets, [rows, ...]."""
        return mixture.log_prob(targets)

    def log_prob_of_draws(self, mixture: Mixture, targets: Any) -> tf.Tensor:
        """Returns what each draw adds to the density, [rows, S, ...], as a log.

        The log of the average over the draws is `log_prob`.
        """
        return mixture.log_prob_of_draws(targets)

    def sample(self, mixture: Mixture, components: Any, noise: Any) -> tf.Tensor:
        """Returns draws, [rows, n, ..., k], of classes [rows, n, ...].

        Args:
            mixture: What is drawn from.
            components: Index of the component of each draw, [rows, n].
            noise: Standard normal noise, [rows, n, ..., `noise_size`].
        """
        return mixture.sample(components, noise)


IDENTITY = Recalibration()
