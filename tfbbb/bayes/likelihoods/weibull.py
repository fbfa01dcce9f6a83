"""The Weibull likelihood."""

from __future__ import annotations

import math

from tfbbb.base import array_ops as ops
from tfbbb.base.types import Tensor
from tfbbb.bayes.likelihoods.likelihood import register
from tfbbb.bayes.likelihoods.log_scale import LogScale
from tfbbb.bayes.likelihoods.standard_normal import standard_normal_cdf

# The mean of the logarithm of a standard exponential number: minus Euler's constant.
_CENTRE = -0.5772156649015329
# Beyond, a survival is 0 in any precision, and its logarithm falls no further.
_LARGEST = 80.0
# Of Stirling's series for log G(x + 1), at x of more than 8.
_SHIFT = 8
_COEFFICIENTS = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


@register(
    "weibull", "A positive number, such as a time, whose hazard is a power of it."
)
class Weibull(LogScale):
    """Positive targets, such as times to an event, whose hazard is a power of time.

        P(Y > y | f) = exp(-(y / l)^(1 / s)),
        E[log y] = loc = shift + scale_of_logs * f

    with log l = loc + 0.577 s: `log y = loc + s * z`, where z - 0.577 is the logarithm
    of a standard exponential number. For s = 1 the hazard is constant, for s < 1 it
    grows with time, for s > 1 it falls. The scale s is learned, given, or an output, as
    for `tfbbb.likelihoods.LogNormal`, and bounded by the training targets like
    `s pi / sqrt(6)`, the standard deviation of `log y`.

    Times that are cut off are targets of `Weibull(censored=True)`: a time, and whether
    the event happened then (1) or the row was still running (0).

    Example:

    >>> import numpy as np, tfbbb
    >>> likelihood = tfbbb.likelihoods.Weibull(scale=1.0, censored=True)
    >>> likelihood.build((None, 1))
    >>> likelihood.adapt([[1.0, 1.0], [2.0, 1.0], [4.0, 0.0]])
    >>> median = likelihood.quantile(0.5, [[0.0]]).numpy()[0, 0]
    >>> running = likelihood.log_prob([[3.0 * median, 0.0]], [[0.0]]).numpy()[0]
    >>> float(np.exp(running).round(6))  # half as many remain after each median
    0.125

    Args:
        scale: The scale s of `log y`, positive; None to learn it.
        standardize: Whether the network works in standard units of `log y`; else it
            gives the mean of `log y` itself.
    """

    location_name = "mean of the logarithm"
    _tail = math.pi**2 / 6.0

    @property
    def _unit_scale(self) -> float:
        return math.sqrt(6.0) / math.pi

    def _log_density(self, z: Tensor, *shape: Tensor) -> Tensor:
        power = ops.minimum(z + _CENTRE, _LARGEST)
        return power - ops.exp(power)

    def _log_survival(self, z: Tensor) -> Tensor:
        return -ops.exp(ops.minimum(z + _CENTRE, _LARGEST))

    def _distribution(self, z: Tensor, *shape: Tensor) -> Tensor:
        return -ops.expm1(self._log_survival(z))

    def _inverse(self, levels: Tensor, *shape: Tensor) -> Tensor:
        return ops.log(-ops.log1p(-levels)) - _CENTRE

    def _from_standard_normal(self, noise: Tensor, *shape: Tensor) -> Tensor:
        # The upper tail of z comes from the lower one of the noise, which has digits.
        return ops.log(-ops.log(standard_normal_cdf(-noise))) - _CENTRE

    def mean(self, outputs: Tensor) -> Tensor:
        location, scale = self._noise_parameters(self._raw(outputs))
        return ops.exp(location - _CENTRE * scale + _log_factorial(scale))

    def variance(self, outputs: Tensor) -> Tensor:
        location, scale = self._noise_parameters(self._raw(outputs))
        square = 2.0 * (location - _CENTRE * scale + _log_factorial(scale))
        excess = _log_factorial(2.0 * scale) - 2.0 * _log_factorial(scale)
        return ops.exp(square) * ops.expm1(excess)


def _log_factorial(x: Tensor) -> Tensor:
    """Returns `log G(x + 1)` of x >= 0, by functions that ONNX has, to 1e-12."""
    product = x + 1.0
    for number in range(2, _SHIFT + 1):
        product = product * (x + float(number))
    large = x + float(_SHIFT)
    inverse = 1.0 / large
    series = sum(
        coefficient * inverse ** (2 * place + 1)
        for place, coefficient in enumerate(_COEFFICIENTS)
    )
    # log G(large + 1), by Stirling.
    found = (large + 0.5) * ops.log(large) - large + 0.5 * math.log(2.0 * math.pi)
    return found + series - ops.log(product)
