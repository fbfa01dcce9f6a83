"""A deterministic matrix times a random one of rank 1."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import Field

from tfbbb.base.lazy import keras, tf
from tfbbb.base.numbers import positive_number
from tfbbb.base.types import Initializer, Tensor
from tfbbb.bayes.families.arguments import PositiveNumber
from tfbbb.bayes.posteriors.posterior import (
    AddWeight,
    InitialScale,
    Parameters,
    Posterior,
    Sizes,
    register,
)

FactorScale = Annotated[
    PositiveNumber, Field(description="Standard deviation of the factors' prior.")
]


@register(
    "rank_1", "A matrix of point estimates times random factors of rows and columns."
)
class Rank1(Posterior):
    """Random factors of inputs and of outputs on a deterministic matrix.

    `w = W * (r s^T)`,   `q(r) = N(r_mean, r_sigma^2)`, `q(s) = N(s_mean, s_sigma^2)`

    (Dusenberry et al. 2020). r has one number per entry of the last axis but one of
    the weight (the inputs, or input channels), s one per entry of the last axis (the
    units); a weight of one axis has s only. The moments are in closed form:

        E[w] = W * (r_mean s_mean^T)
        Var[w] = W^2 * ((r_mean^2 + r_sigma^2) (s_mean^2 + s_sigma^2)^T
                        - r_mean^2 (s_mean^2)^T)

    q(w) lies on a surface of few dimensions, so w has no density. As in the paper, r
    and s have their own priors, and W is a point with the weight's prior p. The loss
    contains, in place of the KL divergence,

        KL(q(r) || N(1, factor_scale^2)) + KL(q(s) || N(1, factor_scale^2)) - log p(W),

    whose last term is the paper's L2 penalty on W for a normal p.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(4, posterior="rank_1")
    >>> layer.build((None, 25))
    >>> tuple(layer.kernel.variables["input_mean"].shape)
    (25,)

    Args:
        factor_scale: Standard deviation of the prior of r and s. Positive.
        initial_scale: Standard deviation of w at the start, relative to W. Positive.
            (W itself starts at about `1/sqrt(fan_in)`.)
    """

    has_points = True
    has_density = False

    def __init__(
        self, factor_scale: FactorScale = 0.1, initial_scale: InitialScale = 0.1
    ):
        self.factor_scale = positive_number("factor_scale", factor_scale)
        self.initial_scale = positive_number("initial_scale", initial_scale)

    def num_parameters(self, shape: Sizes) -> int:
        return math.prod(shape) + 2 * sum(shape[-2:])

    def add_variables(
        self,
        add_weight: AddWeight,
        shape: Sizes,
        fan_in: int,
        mean_initializer: Initializer,
    ) -> dict[str, keras.Variable]:
        variables = {"weights": add_weight("weights", shape, mean_initializer)}
        factors = _factor_sizes(shape)
        # The variances of the factors add up, relative to their means of 1.
        log_scale = math.log(self.initial_scale / math.sqrt(len(factors)))
        for side, size in factors.items():
            for name, initial in (("mean", 1.0), ("log_scale", log_scale)):
                variables[f"{side}_{name}"] = add_weight(
                    f"{side}_{name}", (size,), keras.initializers.Constant(initial)
                )
        return variables

    def noise_shape(self, shape: Sizes) -> Sizes:
        return (sum(_factor_sizes(shape).values()),)

    def mean(self, parameters: Parameters, shape: Sizes) -> Tensor:
        factors = [parameters[f"{side}_mean"] for side in _factor_sizes(shape)]
        return parameters["weights"] * _outer(factors, shape)

    def variance(self, parameters: Parameters, shape: Sizes) -> Tensor:
        squared_means, variances = [], []
        for side in _factor_sizes(shape):
            squared_means.append(tf.square(parameters[f"{side}_mean"]))
            variances.append(tf.exp(2.0 * parameters[f"{side}_log_scale"]))
        second_moments = [m + v for m, v in zip(squared_means, variances, strict=True)]
        spread = _outer(second_moments, shape) - _outer(squared_means, shape)
        return tf.square(parameters["weights"]) * spread

    def draw(self, parameters: Parameters, noise: Tensor, shape: Sizes) -> Tensor:
        sizes = _factor_sizes(shape)
        noises = tf.split(noise, list(sizes.values()), axis=-1)
        factors = [
            parameters[f"{side}_mean"]
            + tf.exp(parameters[f"{side}_log_scale"]) * factor_noise
            for side, factor_noise in zip(sizes, noises, strict=True)
        ]
        return parameters["weights"] * _outer(factors, shape)

    def perturb(self, parameters: Parameters, noise: Tensor, shape: Sizes) -> Tensor:
        draws = self.draw(parameters, noise, shape)
        return draws - self.mean(parameters, shape)

    def log_prob(self, parameters: Parameters, weights: Tensor, shape: Sizes) -> Tensor:
        raise ValueError(
            "The posterior 'rank_1' has no density over the weights: its draws lie on "
            "a surface of fewer dimensions. Where a density is needed use e.g. "
            f"'low_rank_normal'. Received: posterior={self!r}"
        )

    def factor_divergence(self, parameters: Parameters, shape: Sizes) -> Tensor:
        """Returns KL(q(r) || p(r)) + KL(q(s) || p(s)), [...], in nats."""
        return tf.add_n(
            [
                self._from_factor_prior(
                    parameters[f"{side}_mean"], parameters[f"{side}_log_scale"]
                )
                for side in _factor_sizes(shape)
            ]
        )

    def _from_factor_prior(self, mean: Tensor, log_scale: Tensor) -> Tensor:
        # KL(N(mean, sigma^2) || N(1, s^2))
        log_ratio = log_scale - math.log(self.factor_scale)
        distance = tf.square((mean - 1.0) / self.factor_scale)
        divergences = 0.5 * (tf.exp(2.0 * log_ratio) + distance - 1.0) - log_ratio
        return tf.reduce_sum(divergences, axis=-1)


def _factor_sizes(shape: Sizes) -> dict[str, int]:
    if len(shape) < 2:
        return {"output": shape[-1]}
    return {"input": shape[-2], "output": shape[-1]}


def _outer(factors: list[Tensor], shape: Sizes) -> Tensor:
    """Returns the product of factors, [..., size], over the last axes of a weight."""
    axes = min(len(shape), 2)
    product: Any = 1.0
    for position, factor in enumerate(factors):
        for _ in range(axes - 1 - position):
            factor = factor[..., tf.newaxis]
        if position:
            factor = factor[..., tf.newaxis, :]
        product = product * factor
    # Axes of length 1 for the remaining axes of the weight, before these.
    for _ in range(len(shape) - axes):
        product = tf.expand_dims(product, axis=-1 - axes)
    return product
