"""The answers of a mixture of likelihoods."""

import contextlib
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfbbb.likelihoods import Likelihood
from tfbbb.prediction import mixture
from tfbbb.prediction.answers import Answers
from tfbbb.prediction.quantiles import cdf, quantiles

State = list[tuple[keras.Variable, Any]]


class LikelihoodAnswers(Answers):
    """The answers that a likelihood gives.

    Signatures of exported models and live predictions both come from here.

    Args:
        likelihood: p(y | outputs).
        state: Values that its variables have for this prediction, whatever they become;
            none for those that they have.
    """

    def __init__(self, likelihood: Likelihood, state: State | None = None):
        self.likelihood = likelihood
        self._state = state
        self.task = likelihood.task
        self.ordered = likelihood.ordered
        self.discrete = likelihood.discrete
        self.noise_size = likelihood.noise_size
        self.classes = None

    def check_targets(self, targets: Any) -> np.ndarray:
        return self.likelihood.check_targets(targets)

    def mean(self, outputs: Any) -> Any:
        with self._as_it_was():
            return self.likelihood.mean(tf.cast(outputs, tf.float64))

    def quantiles(self, outputs: Any, levels: Any) -> Any:
        with self._as_it_was():
            return quantiles(self.likelihood, levels, outputs)

    def cdf(self, outputs: Any, values: Any) -> Any:
        with self._as_it_was():
            return cdf(self.likelihood, values, outputs)

    def log_prob(self, outputs: Any, targets: Any) -> Any:
        with self._as_it_was():
            return mixture.log_prob(self.likelihood, targets, outputs)

    def log_prob_of_draws(self, outputs: Any, targets: Any) -> Any:
        targets = tf.expand_dims(targets, 1)
        with self._as_it_was():
            log_probs = self.likelihood.log_prob(targets, tf.cast(outputs, tf.float64))
        # A row may have several places, each with targets of its own.
        return tf.reduce_sum(log_probs, axis=list(range(2, len(log_probs.shape))))

    def sample(self, outputs: Any, draws: Any, noise: Any) -> Any:
        chosen = tf.gather(outputs, draws, axis=1, batch_dims=1)
        with self._as_it_was():
            return self.likelihood.sample(chosen, noise)

    def _as_it_was(self) -> contextlib.AbstractContextManager[Any]:
        if self._state is None:
            return contextlib.nullcontext()
        return keras.StatelessScope(state_mapping=self._state)
