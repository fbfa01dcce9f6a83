"""The horseshoe prior, a sparsity prior with Cauchy tails."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tfbbb.base.lazy import tf
from tfbbb.base.private_apis import custom_gradient
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.posteriors.posterior import Sizes, sum_over_weights
from tfbbb.bayes.priors.prior import (
    Parameters,
    PriorOfSquares,
    ScaledPrior,
    register,
)


@register("horseshoe", "Normals with half-Cauchy scales, for sparse weights.")
class Horseshoe(PriorOfSquares, ScaledPrior):
    """Normals whose own scales are half-Cauchy (Carvalho et al. 2010).

    `p(w) = prod_i int N(w_i; 0, s^2 lam_i^2) HalfCauchy(lam_i; 1) d lam_i`

    The integral is an exponential integral:

        log p(w_i) = log(exp(z) E1(z)) - log(s sqrt(2 pi^3)),   z = w_i^2 / (2 s^2)

    The density is infinite at zero, which shrinks most weights, and has the tails of a
    Cauchy distribution, which leaves the others large. For a normal posterior, the KL
    divergence is that of q(w) q(lam) from the joint prior of w and lam, at the optimum
    of each q(lam_i): it replaces w_i^2 above by E[w_i^2]. It is smooth, needs no draw,
    and is an upper bound of KL(q(w) || p(w)) by Jensen's inequality.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(4, prior=tfbbb.priors.Horseshoe(0.1))
    """

    bounded = False

    def log_prob_of_squares(
        self, parameters: Parameters, squares: Tensor, shape: Sizes, fan_in: int
    ) -> Tensor:
        scale = self.scale_for(fan_in)
        densities = _log_scaled_exponential_integral(squares / (2.0 * scale**2))
        constant = math.log(scale) + 0.5 * math.log(2.0 * math.pi**3)
        return sum_over_weights(densities, shape) - math.prod(shape) * constant


# E1(z) + log(z) for z <= 1, and z exp(z) E1(z) as a ratio of polynomials of 1/z for
# z >= 1, to 2e-7 and 2e-8 (Abramowitz & Stegun 1964, 5.1.53 and 5.1.56). Highest power
# first.
_SERIES = (0.00107857, -0.00976004, 0.05519968, -0.24991055, 0.99999193, -0.57721566)
_NUMERATOR = (0.2677737343, 8.6347608925, 18.0590169730, 8.5733287401, 1.0)
_DENOMINATOR = (3.9584969228, 21.0996530827, 25.6329561486, 9.5733223454, 1.0)
# Avoids the pole: a weight of exactly 0 gets a density that float32 can hold.
_SMALLEST = 1e-37


def _log_scaled_exponential_integral(z: Tensor) -> Tensor:
    """Returns log(exp(z) E1(z)), [...]."""

    @custom_gradient
    def integral(z: Tensor) -> Tensor:
        z = tf.maximum(z, _SMALLEST)
        near, far = tf.minimum(z, 1.0), tf.maximum(z, 1.0)
        at_near = tf.math.log(_polynomial(_SERIES, near) - tf.math.log(near)) + near
        inverse = 1.0 / far
        ratio = _polynomial(_NUMERATOR, inverse) / _polynomial(_DENOMINATOR, inverse)
        at_far = tf.math.log(ratio * inverse)
        value = tf.where(z < 1.0, at_near, at_far)

        def gradient(upstream: Tensor) -> Tensor:
            # 1 - 1 / (z exp(z) E1(z)); far out 1 - 1/ratio, without cancellation.
            slope_near = 1.0 - 1.0 / (near * tf.exp(at_near))
            difference = [n - d for n, d in zip(_NUMERATOR, _DENOMINATOR, strict=True)]
            slope_far = _polynomial(difference, inverse) / _polynomial(
                _NUMERATOR, inverse
            )
            return upstream * tf.where(z < 1.0, slope_near, slope_far)

        return value, gradient

    return integral(z)


def _polynomial(coefficients: Iterable[float], x: ArrayLike) -> Tensor:
    value: Any = 0.0
    for coefficient in coefficients:
        value = value * x + coefficient
    return value
