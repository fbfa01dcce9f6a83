"""The predictive distribution of some rows as a mixture of likelihoods."""

from __future__ import annotations

from tfbbb.base import array_ops as ops
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.draw_weights import average_over_draws, log_average_over_draws
from tfbbb.prediction.quantiles import quantiles


class Mixture:
    """The mixture of the likelihoods under S draws of outputs [rows, S, ..., P].

    The draws have equal weights, unless the likelihood has `member_weights`. Densities,
    distribution functions and quantiles are computed in float64.
    """

    def __init__(self, likelihood: Likelihood, outputs: Tensor):
        self.likelihood = likelihood
        self.outputs = likelihood.as_array(outputs)

    @property
    def mean(self) -> Tensor:
        """E[y], [rows, ..., k]."""
        return average_over_draws(self.likelihood, self.mean_of_draws, axis=1)

    @property
    def mean_of_draws(self) -> Tensor:
        """E[y | w] of each draw, [rows, S, ..., k]."""
        return self.likelihood.mean(ops.cast(self.outputs, "float64"))

    def quantiles(self, levels: ArrayLike) -> Tensor:
        """Returns quantiles, [rows, Q, ..., k]: see `tfbbb.prediction.quantiles`."""
        return quantiles(self.likelihood, levels, self.outputs)

    def cdf(self, values: ArrayLike) -> Tensor:
        """Returns P(y <= values), target by target, [rows, ..., k], in float64."""
        values = ops.expand_dims(ops.cast(values, "float64"), 1)
        of_draws = self.likelihood.cdf(values, ops.cast(self.outputs, "float64"))
        return average_over_draws(self.likelihood, of_draws, axis=1)

    def prob(self, values: ArrayLike) -> Tensor:
        """Returns the density or mass at values, target by target, [rows, ..., k]."""
        values = ops.expand_dims(ops.cast(values, "float64"), 1)
        of_draws = self.likelihood.prob(values, ops.cast(self.outputs, "float64"))
        return average_over_draws(self.likelihood, of_draws, axis=1)

    def log_prob(self, targets: ArrayLike) -> Tensor:
        """Returns the log of the average likelihood of the targets, [rows, ...]."""
        of_draws = self.log_prob_of_draws(targets)
        return log_average_over_draws(self.likelihood, of_draws)

    def log_prob_of_draws(self, targets: ArrayLike) -> Tensor:
        """Returns the log likelihood of the targets under each draw, [rows, S, ...]."""
        targets = ops.expand_dims(targets, 1)
        return self.likelihood.log_prob(targets, ops.cast(self.outputs, "float64"))

    def sample(self, draws: Tensor, noise: Tensor) -> Tensor:
        """Returns values of y, [rows, n, ..., k]; for classes indices, [rows, n, ...].

        Each value belongs to one of the draws, [rows, n], and has its own noise.
        """
        chosen = ops.gather(self.outputs, draws, axis=1, batch_dims=1)
        if self.likelihood.unbounded:
            # Targets may be far from zero, and their scale small beside it.
            chosen = ops.cast(chosen, "float64")
        return self.likelihood.sample(chosen, noise)
