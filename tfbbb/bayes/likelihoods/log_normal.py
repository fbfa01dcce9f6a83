"""The log-normal likelihood."""

from __future__ import annotations

from tfbbb.base import array_ops as ops
from tfbbb.base.types import Tensor
from tfbbb.bayes.likelihoods.likelihood import register
from tfbbb.bayes.likelihoods.log_scale import LogScale
from tfbbb.bayes.likelihoods.normal import NormalNoise


@register("log_normal", "A positive number whose logarithm has normal noise.")
class LogNormal(LogScale, NormalNoise):
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

    Times that are cut off are targets of `LogNormal(censored=True)`: a time, and
    whether the event happened then (1) or the row was still running (0).

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

    location_name = "logarithm of the median"

    def mean(self, outputs: Tensor) -> Tensor:
        location, scale = self._noise_parameters(self._raw(outputs))
        return ops.exp(location + 0.5 * ops.square(scale))

    def variance(self, outputs: Tensor) -> Tensor:
        location, scale = self._noise_parameters(self._raw(outputs))
        return ops.expm1(ops.square(scale)) * ops.exp(
            2.0 * location + ops.square(scale)
        )
