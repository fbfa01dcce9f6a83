"""The Gaussian prior with mean zero."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from tfbbb.base.lazy import keras, tf
from tfbbb.base.types import Tensor
from tfbbb.bayes.families.arguments import Flag
from tfbbb.bayes.posteriors.posterior import HALF_LOG_2PI, Sizes, sum_over_weights
from tfbbb.bayes.priors.prior import (
    AddWeight,
    Parameters,
    PriorOfSquares,
    Scale,
    ScaledPrior,
    register,
)

Trainable = Annotated[
    Flag, Field(description="Whether the scale is learned with the posterior.")
]


@register("normal", "Independent normals around zero: the default.")
class Normal(PriorOfSquares, ScaledPrior):
    """Independent normals with mean zero and one scale: `p(w) = prod_i N(w_i; 0, s^2)`.

    With `scale="fan_in"`, `s = 1 / sqrt(fan_in)`: a unit's pre-activation then has, a
    priori, the mean square of its inputs as its variance, whatever the width of the
    layer (Neal 1996). A bias is a weight of the constant input 1, so its `s` is 1.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(4, prior=tfbbb.priors.Normal(scale=0.5))

    Args:
        trainable: Whether `s` is learnt with the posterior (type-II maximum
            likelihood), one for each weight tensor, from `scale` as its start.
    """

    def __init__(self, scale: Scale = "fan_in", trainable: Trainable = False):
        super().__init__(scale)
        self.trainable = trainable

    def add_variables(
        self, add_weight: AddWeight, shape: Sizes, fan_in: int, path: str
    ) -> dict[str, keras.Variable]:
        if not self.trainable:
            return {}
        start = keras.initializers.Constant(math.log(self.scale_for(fan_in)))
        return {"log_scale": add_weight("prior_log_scale", (), start)}

    def log_scale(self, parameters: Parameters, fan_in: int) -> Tensor:
        """Returns `log s`: a number, or [...] if it is learnt."""
        if self.trainable:
            return parameters["log_scale"]
        return math.log(self.scale_for(fan_in))

    def log_prob_of_squares(
        self, parameters: Parameters, squares: Tensor, shape: Sizes, fan_in: int
    ) -> Tensor:
        total = sum_over_weights(squares, shape)
        return self.log_prob_of_sum(parameters, total, shape, fan_in)

    def log_prob_of_sum(
        self, parameters: Parameters, squares: Tensor, shape: Sizes, fan_in: int
    ) -> Tensor:
        """Returns log p of weights whose squares add up to `squares`, [...]."""
        log_scale = self.log_scale(parameters, fan_in)
        precision = (
            tf.exp(-2.0 * log_scale) if self.trainable else math.exp(-2.0 * log_scale)
        )
        return -0.5 * precision * squares - math.prod(shape) * (
            log_scale + HALF_LOG_2PI
        )
