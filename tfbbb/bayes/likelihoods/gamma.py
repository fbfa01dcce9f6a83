"""The gamma likelihood."""

from __future__ import annotations

import math

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import np
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods.count_distribution import stirling_correction
from tfbbb.bayes.likelihoods.likelihood import register
from tfbbb.bayes.likelihoods.log_link import POSITIVE, LogLink
from tfbbb.bayes.likelihoods.mean_concentration import MeanConcentration


@register("gamma", "A positive number whose noise grows with its mean.")
class Gamma(LogLink, MeanConcentration):
    """Positive targets whose noise grows with their mean.

        p(y | f) = (a / m)^a / G(a) * y^(a - 1) exp(-a y / m),
        log m = log(mean) + variation * f

    with mean m, concentration a, and a standard deviation of `m / sqrt(a)`: a constant
    share of the mean (McCullagh and Nelder 1989, chapter 8). The first `fit` sets
    `mean` and `variation` (standard deviation over mean) to the values of the training
    targets, so that nothing depends on the unit of the targets. Initially m is their
    mean and `1 / sqrt(a)` their variation.

    The training targets bound `log m`, and a learned or predicted a so that the length
    m / a of the tail is less than four times the greatest of them. Up to half of that,
    a is left as it is.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.Gamma(concentration=4.0)
    >>> likelihood.build((None, 1))
    >>> likelihood.mean([[0.0]]).numpy().tolist()
    [[1.0]]
    >>> likelihood.variance([[0.0]]).numpy().tolist()
    [[0.25]]

    Args:
        standardize: Whether the network works in standard units; else it gives `log m`
            itself.
    """

    support = POSITIVE

    def _shift_and_scale(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, deviation = super()._shift_and_scale(values)
        self._check_concentration(np.square(mean / deviation), values)
        return np.log(mean), deviation / mean

    def _parameters(self, outputs: Tensor) -> tuple[Tensor, ...]:
        """Returns concentration and mean."""
        raw = self._raw(outputs)
        log_mean = self._bounded(self._located(raw["location"]))
        variation = self._value(self.target_scale, log_mean)
        concentration = self._concentration(
            raw,
            initial=1.0 / ops.square(variation),
            largest_inverse=self._longest_tail(log_mean),
        )
        return concentration, ops.exp(self._moved(log_mean, raw))

    def parameters(self, outputs: Tensor) -> dict[str, Tensor]:
        concentration, mean = self._parameters(outputs)
        return {"concentration": concentration, "rate": concentration / mean}

    def mean(self, outputs: Tensor) -> Tensor:
        return self._parameters(outputs)[1]

    def variance(self, outputs: Tensor) -> Tensor:
        concentration, mean = self._parameters(outputs)
        return ops.square(mean) / concentration

    def log_densities(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        concentration, mean = self._parameters(outputs)
        values = ops.cast(values, mean.dtype)
        inside = values > 0.0
        values = ops.where(inside, values, ops.ones_like(values))
        # In this order large concentrations lose no digits: both terms are small near
        # the mean.
        share = values / mean
        densities = (
            concentration * (ops.log(share) - (share - 1.0))
            + _log_of_powers_over_gamma(concentration)
            - ops.log(values)
        )
        return ops.where(inside, densities, ops.constant(-math.inf, densities.dtype))

    def cdf(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        concentration, mean = self._parameters(outputs)
        values = ops.maximum(ops.cast(values, mean.dtype), 0.0)
        return ops.igamma(concentration, concentration * values / mean)

    def _inverse(self, levels: Tensor, *parameters: Tensor) -> Tensor:
        concentration, mean = parameters
        return ops.igammainv(concentration, levels) * mean / concentration


def _log_of_powers_over_gamma(a: Tensor) -> Tensor:
    """Returns `log(a^a exp(-a) / G(a))`, by Stirling's formula and its correction."""
    return 0.5 * ops.log(a / (2.0 * math.pi)) - stirling_correction(a)
