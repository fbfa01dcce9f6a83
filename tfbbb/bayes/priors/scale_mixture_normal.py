"""The prior of Blundell et al. (2015), a mixture of a wide and a narrow normal."""

from __future__ import annotations

import math
from numbers import Real
from typing import Annotated

from pydantic import Field

from tfbbb.base.lazy import tf
from tfbbb.base.numbers import positive_number
from tfbbb.base.types import Tensor
from tfbbb.bayes.families.arguments import Number, PositiveNumber
from tfbbb.bayes.posteriors.posterior import HALF_LOG_2PI, Sizes, sum_over_weights
from tfbbb.bayes.priors.prior import Parameters, Prior, register

Share = Annotated[Number, Field(gt=0, lt=1, description="Weight of the first normal.")]


_NARROW = math.exp(-6)


@register(
    "scale_mixture_normal",
    "A wide and a narrow normal around zero (Blundell et al. 2015).",
)
class ScaleMixtureNormal(Prior):
    """Mixture of two zero-mean normals, weight by weight.

    `p(w) = prod_i (pi N(w_i; 0, scale1^2) + (1 - pi) N(w_i; 0, scale2^2))`

    The wide component has a heavy tail; the narrow one pulls most weights to zero
    (Blundell et al. 2015, equation 7). Its KL divergence from a Gaussian posterior has
    no closed form and is estimated on the drawn weights: see
    `estimated_expected_log_prob`.

    Example:

    >>> import tfbbb
    >>> prior = tfbbb.priors.ScaleMixtureNormal(pi=0.25, scale1=1.0, scale2=0.002)
    >>> layer = tfbbb.layers.DenseVariational(4, prior=prior)

    Args:
        pi: Weight of the first component, strictly between 0 and 1.
        scale1: Standard deviation of the first component.
        scale2: Standard deviation of the second component.
    """

    def __init__(
        self,
        pi: Share = 0.5,
        scale1: PositiveNumber = 1.0,
        scale2: PositiveNumber = _NARROW,
    ):
        if not (isinstance(pi, Real) and 0 < pi < 1):
            raise ValueError(
                f"`pi` must be a number strictly between 0 and 1. Received: pi={pi!r}"
            )
        self.pi: float = float(pi)
        self.scale1: float = positive_number("scale1", scale1)
        self.scale2: float = positive_number("scale2", scale2)

    def log_prob(
        self, parameters: Parameters, weights: Tensor, shape: Sizes, fan_in: int
    ) -> Tensor:
        wide, narrow = self._log_components(tf.square(weights))
        larger = tf.maximum(wide, narrow)
        densities = larger + tf.math.softplus(-tf.abs(wide - narrow))
        return sum_over_weights(densities, shape)

    def estimated_expected_log_prob(
        self, mean: Tensor, variance: Tensor, noise: Tensor, shape: Sizes
    ) -> Tensor:
        """Returns an unbiased estimate of E[log p(w)] for normal weights.

        For one component k and the other component j,

            E[log p] = E[log pi_k N_k] + E[softplus(r)],   r = log(pi_j N_j / pi_k N_k)

        The first part has a closed form. The draws estimate only the second part, which
        is small if q lies in the region where component k is the larger one. k is the
        narrow component if q lies well within its region, else the wide component.

        If q is wider than the region of the narrow component, few draws meet the steep
        slopes of its peak. There the gradient of the second part is the score-function
        estimate, which depends on the height of the peak and not on its slopes. The
        variance of the gradient is never larger than for `log q(w) - log p(w)`, and for
        most q far smaller. `noise` is `(w - mean) / stddev`, without a gradient.
        """
        stddev = tf.sqrt(variance)
        weights = mean + stddev * noise
        second_moment = tf.square(mean) + variance
        reach = self._squared_reach
        is_narrow = second_moment < 0.25 * reach
        is_broad = (variance > reach) & (reach > 0.0)
        wide, narrow = self._log_components(
            tf.square(tf.where(is_broad, tf.stop_gradient(weights), weights))
        )
        remainder = tf.math.softplus(tf.where(is_narrow, wide - narrow, narrow - wide))
        # log q at a fixed weight up to a constant, minus its value: a gradient alone.
        standardized = (tf.stop_gradient(weights) - mean) / stddev
        log_q = -0.5 * tf.square(standardized) - tf.math.log(stddev)
        score = log_q - tf.stop_gradient(log_q)
        remainder += tf.where(is_broad, tf.stop_gradient(remainder) * score, 0.0)
        wide, narrow = self._log_components(second_moment)
        expected = tf.where(is_narrow, narrow, wide) + remainder
        return sum_over_weights(expected, shape)

    def _log_components(self, squares: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the log densities of the wide and the narrow component."""
        return tuple(
            math.log(share / scale) - HALF_LOG_2PI - squares / (2.0 * scale**2)
            for share, scale in self._wide_then_narrow
        )

    @property
    def _wide_then_narrow(self) -> list[tuple[float, float]]:
        components = [(self.pi, self.scale1), (1.0 - self.pi, self.scale2)]
        return sorted(components, key=lambda component: -component[1])

    @property
    def _squared_reach(self) -> float:
        """The largest w^2 at which the narrow component is larger, or 0 if none."""
        (wide_share, wide), (narrow_share, narrow) = self._wide_then_narrow
        log_ratio = math.log(narrow_share * wide / (wide_share * narrow))
        difference = 0.5 * (narrow**-2 - wide**-2)
        return log_ratio / difference if log_ratio > 0 and difference > 0 else 0.0
