"""The predictive distribution of some rows."""

from typing import Any

import tensorflow as tf

from tfbbb.likelihoods import Likelihood
from tfbbb.prediction import mixture
from tfbbb.prediction.quantiles import cdf, quantiles


class LikelihoodMixture:
    """The predictive distribution of some rows: a mixture of their likelihoods.

    Everything is computed in float64.

    Args:
        likelihood: p(y | outputs).
        outputs: [rows, S, ..., P], as the likelihood takes them.
    """

    def __init__(self, likelihood: Likelihood, outputs: Any):
        self.likelihood = likelihood
        self.outputs = tf.convert_to_tensor(outputs)

    @property
    def mean(self) -> tf.Tensor:
        """E[y], [rows, ..., k]."""
        of_draws = self.likelihood.mean(tf.cast(self.outputs, tf.float64))
        return tf.reduce_mean(of_draws, axis=1)

    def quantiles(self, levels: Any) -> tf.Tensor:
        """Returns quantiles, [rows, Q, ..., k]: see `tfbbb.prediction.quantiles`."""
        return quantiles(self.likelihood, levels, self.outputs)

    def cdf(self, values: Any) -> tf.Tensor:
        """Returns P(y <= values), target by target, [rows, ..., k]."""
        return cdf(self.likelihood, values, self.outputs)

    def prob(self, values: Any) -> tf.Tensor:
        """Returns the density or mass at values, target by target, [rows, ..., k]."""
        values = tf.cast(values, tf.float64)[:, tf.newaxis]
        of_draws = self.likelihood.prob(values, tf.cast(self.outputs, tf.float64))
        return tf.reduce_mean(of_draws, axis=1)

    def log_prob(self, targets: Any) -> tf.Tensor:
        """Returns the log of the average likelihood of the targets, [rows, ...]."""
        return mixture.log_prob(self.likelihood, targets, self.outputs)

    def log_prob_of_draws(self, targets: Any) -> tf.Tensor:
        """Returns the log likelihood under each draw, [rows, S, ...]."""
        targets = tf.convert_to_tensor(targets)[:, tf.newaxis]
        return self.likelihood.log_prob(targets, tf.cast(self.outputs, tf.float64))

    def sample(self, components: Any, noise: Any) -> tf.Tensor:
        """Returns draws from components [rows, n], by standard normal noise."""
        chosen = tf.gather(self.outputs, components, axis=1, batch_dims=1)
        return self.likelihood.sample(chosen, noise)
