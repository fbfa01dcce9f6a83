"""The answers of a recalibrated mixture of likelihoods."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfbbb.likelihoods import Likelihood
from tfbbb.prediction.likelihood_answers import LikelihoodAnswers, State
from tfbbb.prediction.likelihood_mixture import LikelihoodMixture
from tfbbb.recalibration.recalibration import IDENTITY, Recalibration


class RecalibratedAnswers(LikelihoodAnswers):
    """The answers that a likelihood gives, recalibrated.

    Args:
        likelihood: p(y | outputs).
        recalibration: What the answers are changed by.
        state: As for `LikelihoodAnswers`.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        recalibration: Recalibration,
        state: State | None = None,
    ):
        super().__init__(likelihood, state)
        self.recalibration = recalibration
        self.central_intervals = recalibration.central_intervals

    def summary(
        self, summary: dict[str, Any], quantiles: Callable[[np.ndarray], Any]
    ) -> dict[str, Any]:
        return self.recalibration.summary(summary, quantiles)

    def reach(self, level: Any) -> Any:
        return self.recalibration.reach(level)

    def quantiles(self, outputs: Any, levels: Any) -> Any:
        with self._as_it_was():
            return self.recalibration.quantiles(self._mixture(outputs), levels)

    def cdf(self, outputs: Any, values: Any) -> Any:
        if self.task == "classification":
            return super().cdf(outputs, values)
        with self._as_it_was():
            return self.recalibration.cdf(self._mixture(outputs), values)

    def log_prob(self, outputs: Any, targets: Any) -> Any:
        with self._as_it_was():
            return self.recalibration.log_prob(self._mixture(outputs), targets)

    def log_prob_of_draws(self, outputs: Any, targets: Any) -> Any:
        mixture = self._mixture(outputs)
        with self._as_it_was():
            log_probs = self.recalibration.log_prob_of_draws(mixture, targets)
        # As for those that are not recalibrated.
        return tf.reduce_sum(log_probs, axis=list(range(2, len(log_probs.shape))))

    def sample(self, outputs: Any, draws: Any, noise: Any) -> Any:
        with self._as_it_was():
            return self.recalibration.sample(self._mixture(outputs), draws, noise)

    def _mixture(self, outputs: Any) -> LikelihoodMixture:
        return LikelihoodMixture(self.likelihood, outputs)


def answers_of(
    likelihood: Likelihood, recalibration: Recalibration, state: State | None = None
) -> LikelihoodAnswers:
    """Returns the answers of a likelihood, recalibrated where there is a need to."""
    if recalibration == IDENTITY or recalibration.acts_on_outputs:
        return LikelihoodAnswers(likelihood, state)
    return RecalibratedAnswers(likelihood, recalibration, state)
