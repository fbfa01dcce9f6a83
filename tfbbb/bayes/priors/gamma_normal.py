"""The normal prior with a gamma-distributed precision."""

from __future__ import annotations

import math

from tfbbb.base.lazy import tf
from tfbbb.base.numbers import positive_number
from tfbbb.base.types import Tensor
from tfbbb.bayes.families.arguments import PositiveNumber
from tfbbb.bayes.posteriors.posterior import Sizes, sum_over_weights
from tfbbb.bayes.priors.prior import Parameters, PriorOfSquares, register


@register(
    "gamma_normal", "Normals with one unknown precision, gamma-distributed, per tensor."
)
class GammaNormal(PriorOfSquares):
    """Normals with one unknown precision, shared by all the weights of a tensor.

    `p(w) = int prod_i N(w_i; 0, 1 / lam) Gamma(lam; shape, rate) d lam`

    (Hernandez-Lobato & Adams 2015, where shape = rate = 6.) The integral is a Student-t
    over all n weights together:

        log p(w) = log Gamma(a + n/2) - log Gamma(a) + a log b - n/2 log(2 pi)
                   - (a + n/2) log(b + sum_i w_i^2 / 2)

    For a normal posterior, the KL divergence is that of q(w) q(lam) from the joint
    prior of w and lam, at the optimum q(lam) = Gamma(a + n/2, b + E[sum_i w_i^2] / 2).
    It replaces the sum in log p by E[sum_i w_i^2], and is an upper bound of
    KL(q(w) || p(w)), tight for many weights.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(4, prior="gamma_normal")

    Args:
        shape: Shape a of the Gamma distribution of the precision. Positive.
        rate: Rate b of the Gamma distribution of the precision. Positive.
    """

    def __init__(self, shape: PositiveNumber = 6.0, rate: PositiveNumber = 6.0):
        self.shape = positive_number("shape", shape)
        self.rate = positive_number("rate", rate)

    def log_prob_of_squares(
        self, parameters: Parameters, squares: Tensor, shape: Sizes, fan_in: int
    ) -> Tensor:
        half_size = 0.5 * math.prod(shape)
        constant = (
            math.lgamma(self.shape + half_size)
            - math.lgamma(self.shape)
            - half_size * math.log(2.0 * math.pi * self.rate)
        )
        # In units of the rate, so that float32 holds the logarithm of many weights.
        excess = sum_over_weights(squares, shape) / (2.0 * self.rate)
        return constant - (self.shape + half_size) * tf.math.log1p(excess)
