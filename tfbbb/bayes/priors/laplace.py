"""The Laplace prior."""

from __future__ import annotations

import math

from tfbbb.base.lazy import tf
from tfbbb.base.types import Tensor
from tfbbb.bayes.posteriors.posterior import Sizes, sum_over_weights
from tfbbb.bayes.priors.prior import Parameters, ScaledPrior, register


@register("laplace", "Independent Laplace distributions around zero.")
class Laplace(ScaledPrior):
    """Independent Laplace distributions: `p(w) = prod_i exp(-|w_i| / s) / (2 s)`.

    With it, a point estimate is the lasso (Williams 1995). For normal weights, `|w|`
    has a folded normal distribution, so the KL divergence has a closed form:

        E|w| = sigma sqrt(2 / pi) exp(-r^2) + mu erf(r),   r = mu / (sqrt(2) sigma)

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(4, prior="laplace")

    Args:
        scale: Mean of `|w|`, a positive number, or `"fan_in"` for `1 / sqrt(fan_in)`.
            The standard deviation is sqrt(2) times as large.
    """

    def log_prob(
        self, parameters: Parameters, weights: Tensor, shape: Sizes, fan_in: int
    ) -> Tensor:
        return self._log_prob_of_absolute(tf.abs(weights), shape, fan_in)

    def expected_log_prob(
        self,
        parameters: Parameters,
        mean: Tensor,
        variance: Tensor,
        shape: Sizes,
        fan_in: int,
    ) -> Tensor:
        ratio = mean * tf.math.rsqrt(2.0 * variance)
        absolute = tf.sqrt(2.0 / math.pi * variance) * tf.exp(
            -tf.square(ratio)
        ) + mean * tf.math.erf(ratio)
        return self._log_prob_of_absolute(absolute, shape, fan_in)

    def _log_prob_of_absolute(
        self, absolute: Tensor, shape: Sizes, fan_in: int
    ) -> Tensor:
        scale = self.scale_for(fan_in)
        total = sum_over_weights(absolute, shape)
        return -total / scale - math.prod(shape) * math.log(2.0 * scale)
