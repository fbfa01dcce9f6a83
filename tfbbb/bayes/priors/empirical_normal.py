"""The normal prior whose moments follow the posterior (empirical Bayes)."""

from __future__ import annotations

import math

from tfbbb.base.lazy import keras, tf
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.posteriors.posterior import HALF_LOG_2PI, Sizes, sum_over_weights
from tfbbb.bayes.priors.prior import (
    AddWeight,
    Parameters,
    Prior,
    WeightMoments,
    register,
)

_MIN_GROUP = 10


@register(
    "empirical_normal",
    "A normal fitted to the weights of its tensor, which must be at least ten.",
)
class EmpiricalNormal(Prior):
    """One normal for all weights of a tensor, at its optimum for the current q.

    `p(w) = prod_i N(w_i; m, s^2)`

    with the m and s^2 that minimise KL(q || p) summed over the n weights (Graves 2011,
    section 4.2):

        m = mean_i E[w_i],    s^2 = mean_i (Var[w_i] + (E[w_i] - m)^2)

    There is no scale to choose. But for a single weight the optimum is its own q, with
    a divergence of 0, so tensors of fewer than 10 weights (a small bias) raise an
    error.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(4, prior="empirical_normal")
    """

    # The scale shrinks to 0 with the weights.
    bounded = False

    def add_variables(
        self, add_weight: AddWeight, shape: Sizes, fan_in: int, path: str
    ) -> dict[str, keras.Variable]:
        size = math.prod(shape)
        if size < _MIN_GROUP:
            raise ValueError(
                "The prior 'empirical_normal' adapts to the weights and would not "
                f"restrain so few. It needs at least {_MIN_GROUP} weights; pass "
                "another prior, e.g. 'gamma_normal'. "
                f"Received: {path!r} of {size} weights"
            )
        return {}

    def parameters(self, weight: WeightMoments) -> Parameters:
        """Returns m and s^2 at their optimum, [...].

        They have no gradient, because at the optimum the divergence does not change
        with m and s^2.
        """
        mean, variance = weight.mean, weight.variance
        center = weight.sum(mean) / weight.size
        spread = tf.square(mean - _with_axes(center, weight.shape)) + variance
        square = weight.sum(spread) / weight.size
        return {"mean": tf.stop_gradient(center), "variance": tf.stop_gradient(square)}

    def log_prob(
        self, parameters: Parameters, weights: Tensor, shape: Sizes, fan_in: int
    ) -> Tensor:
        return self.expected_log_prob(parameters, weights, 0.0, shape, fan_in)

    def expected_log_prob(
        self,
        parameters: Parameters,
        mean: Tensor,
        variance: Tensor,
        shape: Sizes,
        fan_in: int,
    ) -> Tensor:
        deviations = mean - _with_axes(parameters["mean"], shape)
        squares = sum_over_weights(tf.square(deviations) + variance, shape)
        square = parameters["variance"]
        return -0.5 * squares / square - math.prod(shape) * (
            0.5 * tf.math.log(square) + HALF_LOG_2PI
        )


def _with_axes(values: ArrayLike, shape: Sizes) -> Tensor:
    """Appends an axis of length 1 to `values`, [...], for each axis of the weight."""
    for _ in shape:
        values = values[..., tf.newaxis]
    return values
