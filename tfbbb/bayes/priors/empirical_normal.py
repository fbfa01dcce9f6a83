"""The normal prior whose moments follow the posterior (empirical Bayes)."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from tfbbb.base.lazy import keras, tf
from tfbbb.base.numbers import positive_number
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.families.arguments import PositiveNumber
from tfbbb.bayes.posteriors.normal_posterior import HALF_LOG_2PI
from tfbbb.bayes.posteriors.posterior import Sizes, sum_over_weights
from tfbbb.bayes.priors.prior import (
    AddWeight,
    Parameters,
    Prior,
    WeightMoments,
    register,
)

_MIN_GROUP = 10


Hyperprior = Annotated[
    tuple[PositiveNumber, PositiveNumber] | None,
    Field(description="Shape and scale of an inverse-gamma prior of the variance."),
]


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
    error. With an inverse-gamma hyperprior on s^2 any number is possible; m is then 0
    and

        s^2 = (sum_i E[w_i^2] + 2 b) / (n + 2 a + 2)

    is the minimiser of KL(q || p) - log InverseGamma(s^2; a, b), which takes the place
    of the KL divergence (Wu et al. 2019, section 3.3).

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(
    ...     4,
    ...     prior="empirical_normal",
    ...     bias_prior=tfbbb.priors.EmpiricalNormal(hyperprior=(2.0, 1.0)),
    ... )

    Args:
        hyperprior: None, or shape a and scale b of the inverse-gamma distribution of
            s^2, both positive.

    Raises:
        ValueError: When built for fewer than 10 weights without a hyperprior.
    """

    def __init__(self, hyperprior: Hyperprior = None):
        if hyperprior is not None:
            try:
                shape, scale = (positive_number("", value) for value in hyperprior)
            except (TypeError, ValueError):
                raise ValueError(
                    "`hyperprior` must be None or two positive finite numbers, shape "
                    "and scale of an inverse-gamma distribution. "
                    f"Received: hyperprior={hyperprior!r}"
                ) from None
            hyperprior = (shape, scale)
        self.hyperprior = hyperprior

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        """Without a hyperprior, the scale shrinks to 0 with the weights."""
        return self.hyperprior is not None

    def add_variables(
        self, add_weight: AddWeight, shape: Sizes, fan_in: int, path: str
    ) -> dict[str, keras.Variable]:
        size = math.prod(shape)
        if self.hyperprior is None and size < _MIN_GROUP:
            raise ValueError(
                "The prior 'empirical_normal' adapts to the weights and would not "
                f"restrain so few. It needs at least {_MIN_GROUP} weights or a "
                "hyperprior: pass "
                "`tfbbb.priors.EmpiricalNormal(hyperprior=(2.0, 1.0))` or "
                f"another prior, e.g. 'normal'. Received: {path!r} of {size} weights"
            )
        return {}

    def parameters(self, weight: WeightMoments) -> Parameters:
        """Returns m and s^2 at their optimum, [...].

        They have no gradient, because at the optimum the divergence does not change
        with m and s^2.
        """
        mean, variance = weight.mean, weight.variance
        if self.hyperprior is None:
            center = weight.sum(mean) / weight.size
            spread = tf.square(mean - _with_axes(center, weight.shape)) + variance
            square = weight.sum(spread) / weight.size
        else:
            shape, scale = self.hyperprior
            total = weight.sum(tf.square(mean) + variance)
            center = tf.zeros_like(total)
            square = (total + 2.0 * scale) / (weight.size + 2.0 * shape + 2.0)
        return {"mean": tf.stop_gradient(center), "variance": tf.stop_gradient(square)}

    def log_prob(
        self, parameters: Parameters, weights: Tensor, shape: Sizes, fan_in: int
    ) -> Tensor:
        deviations = weights - _with_axes(parameters["mean"], shape)
        squares = sum_over_weights(tf.square(deviations), shape)
        return self._log_prob_of_squares(parameters["variance"], squares, shape)

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
        return self._log_prob_of_squares(parameters["variance"], squares, shape)

    def _log_prob_of_squares(
        self, variance: Tensor, squares: Tensor, shape: Sizes
    ) -> Tensor:
        log_variance = tf.math.log(variance)
        log_prob = -0.5 * squares / variance - math.prod(shape) * (
            0.5 * log_variance + HALF_LOG_2PI
        )
        if self.hyperprior is None:
            return log_prob
        a, b = self.hyperprior
        log_hyperprior = (
            a * math.log(b) - math.lgamma(a) - (a + 1.0) * log_variance - b / variance
        )
        return log_prob + log_hyperprior


def _with_axes(values: ArrayLike, shape: Sizes) -> Tensor:
    """Appends an axis of length 1 to `values`, [...], for each axis of the weight."""
    for _ in shape:
        values = values[..., tf.newaxis]
    return values
