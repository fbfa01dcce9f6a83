"""The log-normal likelihood."""

from __future__ import annotations

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import np
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods.likelihood import register
from tfbbb.bayes.likelihoods.log_link import POSITIVE, LogLink
from tfbbb.bayes.likelihoods.normal import NormalNoise
from tfbbb.bayes.likelihoods.regression import soft_limit


@register("log_normal", "A positive number whose logarithm has normal noise.")
class LogNormal(LogLink, NormalNoise):
    """Positive targets of normal logarithms: `log y ~ N(loc, scale^2)`.

    The network works in standard units of `log y`, whose mean and standard deviation
    are set by the first `fit`: `loc = shift + scale_of_logs * f`. Median, mean and
    variance of y are

        exp(loc),  exp(loc + scale^2 / 2),  (exp(scale^2) - 1) exp(2 loc + scale^2)

    The noise is multiplicative. It is learned, given, or an output, as for
    `tfbbb.likelihoods.Normal`, in units of `log y`: 0.1 is about 10 % of y.

    The training targets bound `loc`, and a learned or predicted scale by
    `scale^2 < log(4 greatest) - loc`, which leaves it as it is up to half of that. So
    the root of the mean square of y, `exp(loc + scale^2)`, is less than four times the
    greatest training target.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.LogNormal(scale=0.1)
    >>> likelihood.build((None, 1))
    >>> likelihood.quantile(0.5, [[0.0]]).numpy().tolist()
    [[1.0]]

    Args:
        scale: Standard deviation of `log y`, positive; None to learn it.
        standardize: Whether the network works in standard units of `log y`; else it
            gives the mean of `log y` itself.
    """

    support = POSITIVE
    location_name = "logarithm of the median"

    def _shift_and_scale(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return super()._shift_and_scale(np.log(values))

    def _located(self, raw: Tensor) -> Tensor:
        return self._bounded(super()._located(raw))

    def _noise_parameters(self, raw: dict[str, Tensor]) -> tuple[Tensor, ...]:
        location, scale = super()._noise_parameters(raw)
        if self.scale is None:
            limit = self._log_of_longest_tail(location)
            scale = ops.sqrt(soft_limit(ops.square(scale), limit))
        return self._moved(location, raw), scale

    def mean(self, outputs: Tensor) -> Tensor:
        location, scale = self._noise_parameters(self._raw(outputs))
        return ops.exp(location + 0.5 * ops.square(scale))

    def variance(self, outputs: Tensor) -> Tensor:
        location, scale = self._noise_parameters(self._raw(outputs))
        return ops.expm1(ops.square(scale)) * ops.exp(
            2.0 * location + ops.square(scale)
        )

    def log_prob(self, targets: ArrayLike, outputs: Tensor) -> Tensor:
        logs = self._logarithms(targets, outputs)
        return super().log_prob(logs, outputs) - ops.reduce_sum(logs, axis=-1)

    def cdf(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        return super().cdf(self._logarithms(values, outputs), outputs)

    def prob(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        density = super().prob(self._logarithms(values, outputs), outputs)
        return ops.divide_no_nan(density, ops.cast(values, density.dtype))

    def quantile(self, levels: ArrayLike, outputs: Tensor) -> Tensor:
        return ops.exp(super().quantile(levels, outputs))

    def sample(self, outputs: Tensor, noise: Tensor) -> Tensor:
        return ops.exp(super().sample(outputs, noise))

    def _logarithms(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        """Returns `log y` in the precision of the outputs; minus infinity below 0."""
        values = ops.cast(values, self.at_least_float32(outputs).dtype)
        return ops.log(ops.maximum(values, 0.0))
