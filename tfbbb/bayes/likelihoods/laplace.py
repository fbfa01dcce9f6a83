"""The Laplace likelihood."""

from __future__ import annotations

import math

from tfbbb.base import array_ops as ops
from tfbbb.base.types import Tensor
from tfbbb.bayes.likelihoods.likelihood import register
from tfbbb.bayes.likelihoods.location_scale import LocationScale


@register("laplace", "A number with Laplace noise.")
class Laplace(LocationScale):
    """Targets around a median: `p(y | f) = exp(-|y - loc| / scale) / (2 scale)`.

    `loc = shift + scale_of_targets * f` is median and mean, and the variance is
    `2 scale^2`. The negative log likelihood is the absolute error, up to a constant: a
    row far from all others has no more influence than any other row. Shift and scale of
    the targets are as for `Normal`, and the noise initially has their variance.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.Laplace(scale=2.0)
    >>> likelihood.build((None, 1))
    >>> likelihood.variance([[10.0]]).numpy().tolist()
    [[8.0]]

    Args:
        scale: Mean absolute deviation in the units of the targets, positive; None to
            learn it.
    """

    @property
    def _unit_scale(self) -> float:
        return math.sqrt(0.5)

    def _log_density(self, z: Tensor, *shape: Tensor) -> Tensor:
        return -ops.abs(z) - math.log(2.0)

    def _distribution(self, z: Tensor, *shape: Tensor) -> Tensor:
        tail = 0.5 * ops.exp(-ops.abs(z))
        return ops.where(z < 0.0, tail, 1.0 - tail)

    def _inverse(self, levels: Tensor, *shape: Tensor) -> Tensor:
        tail = ops.log(2.0 * ops.minimum(levels, 1.0 - levels))
        return ops.where(levels < 0.5, tail, -tail)

    def _standard_variance(self, *shape: Tensor) -> Tensor:
        return 2.0
