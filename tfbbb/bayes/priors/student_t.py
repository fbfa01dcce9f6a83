"""The Student-t prior."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from tfbbb.base.lazy import tf
from tfbbb.base.numbers import positive_number
from tfbbb.base.types import Tensor
from tfbbb.bayes.families.arguments import PositiveNumber
from tfbbb.bayes.posteriors.posterior import Sizes, sum_over_weights
from tfbbb.bayes.priors.prior import Parameters, Scale, ScaledPrior, register

Df = Annotated[PositiveNumber, Field(description="Degrees of freedom.")]


@register("student_t", "Independent Student t distributions around zero.")
class StudentT(ScaledPrior):
    """Independent Student-t distributions with mode zero.

    `p(w) = prod_i c (1 + (w_i / s)^2 / df)^(-(df + 1) / 2) / s`

    Its heavy tails let a few weights be large at little cost. The KL divergence from a
    normal posterior has no closed form and is estimated on drawn weights.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(4, prior=tfbbb.priors.StudentT(df=3.0))

    Args:
        df: Degrees of freedom, positive: 1 is the Cauchy distribution, and towards
            infinity it becomes the normal one.
    """

    def __init__(self, df: Df = 4.0, scale: Scale = "fan_in"):
        super().__init__(scale)
        self.df = positive_number("df", df)

    def log_prob(
        self, parameters: Parameters, weights: Tensor, shape: Sizes, fan_in: int
    ) -> Tensor:
        scale, df = self.scale_for(fan_in), self.df
        constant = (
            math.lgamma(0.5 * (df + 1.0))
            - math.lgamma(0.5 * df)
            - 0.5 * math.log(math.pi * df)
            - math.log(scale)
        )
        bends = tf.math.log1p(tf.square(weights) / (df * scale**2))
        return math.prod(shape) * constant - 0.5 * (df + 1.0) * sum_over_weights(
            bends, shape
        )
