"""The normal posterior with a diagonal plus low-rank covariance."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from tfbbb.base.lazy import tf
from tfbbb.base.numbers import positive_integer
from tfbbb.base.types import Initializer, Tensor
from tfbbb.bayes.families.arguments import Integer
from tfbbb.bayes.posteriors.posterior import (
    Declared,
    InitialScale,
    NormalPosterior,
    Parameters,
    Sizes,
    flatten_weights,
    register,
    reshape_last_axes,
    sum_over_weights,
    unflatten_weights,
)

Rank = Annotated[Integer, Field(ge=1, le=100, description="Rank of the matrix.")]


@register(
    "low_rank_normal", "A normal whose covariance is a diagonal plus a low-rank matrix."
)
class LowRankNormal(NormalPosterior):
    """A normal with a diagonal plus low-rank covariance (Tomczak et al. 2020).

    `q(w) = N(w; mean, diag(exp(log_scale)^2) + F F^T)`,   F: [n, rank]

    The columns of F are directions in which the weights vary together. Densities need
    no matrix larger than rank × rank (the identities of Woodbury and Sylvester), so
    a weight costs about 1 + rank times as much as with `mean_field_normal`.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(
    ...     4, posterior=tfbbb.posteriors.LowRankNormal(rank=3)
    ... )
    >>> layer.build((None, 25))
    >>> tuple(layer.kernel.variables["factor"].shape)
    (25, 4, 3)

    Args:
        rank: Number of directions, at least 1.
        initial_scale: Standard deviation of the diagonal part at the start, in units
            of `1/sqrt(fan_in)` (a bias has a fan-in of 1). Positive. F starts with
            small random entries, a tenth of it in all: at F = 0 its gradient is 0.
    """

    def __init__(self, rank: Rank = 2, initial_scale: InitialScale = 0.1):
        super().__init__(initial_scale)
        self.rank = positive_integer("rank", rank)

    def declared(self, shape: Sizes, fan_in: int, mean: Initializer) -> Declared:
        log_scale = self.initial_log_scale(fan_in)
        stddev = 0.1 * math.exp(log_scale) / math.sqrt(self.rank)
        factor = {"class_name": "RandomNormal", "config": {"stddev": stddev}}
        return {
            "mean": (shape, mean),
            "log_scale": (shape, log_scale),
            "factor": ((*shape, self.rank), factor),
        }

    def noise_shape(self, shape: Sizes) -> Sizes:
        return (math.prod(shape) + self.rank,)

    def variance(self, parameters: Parameters, shape: Sizes) -> Tensor:
        along_directions = tf.reduce_sum(tf.square(parameters["factor"]), axis=-1)
        return tf.exp(2.0 * parameters["log_scale"]) + along_directions

    def perturb(self, parameters: Parameters, noise: Tensor, shape: Sizes) -> Tensor:
        size = math.prod(shape)
        own = unflatten_weights(noise[..., :size], shape)
        shared = tf.linalg.matvec(
            self._flat_factor(parameters, shape), noise[..., size:]
        )
        return tf.exp(parameters["log_scale"]) * own + unflatten_weights(shared, shape)

    def squared_distance(
        self, parameters: Parameters, deviations: Tensor, shape: Sizes
    ) -> Tensor:
        standardized = flatten_weights(
            deviations * tf.exp(-parameters["log_scale"]), shape
        )
        factor, capacitance = self._capacitance(parameters, shape)
        # Woodbury: z^T (I + G G^T)^-1 z = |z|^2 - |C^-1 G^T z|^2, C C^T = I + G^T G
        projected = tf.linalg.matvec(factor, standardized, transpose_a=True)
        explained = tf.linalg.triangular_solve(capacitance, projected[..., tf.newaxis])
        squares = tf.reduce_sum(tf.square(standardized), axis=-1)
        return squares - tf.reduce_sum(tf.square(explained), axis=(-2, -1))

    def log_volume(self, parameters: Parameters, shape: Sizes) -> Tensor:
        # Sylvester: |D + F F^T| = |D| |I + G^T G|
        _, capacitance = self._capacitance(parameters, shape)
        roots = tf.math.log(tf.linalg.diag_part(capacitance))
        diagonal = sum_over_weights(parameters["log_scale"], shape)
        return diagonal + tf.reduce_sum(roots, axis=-1)

    def _flat_factor(self, parameters: Parameters, shape: Sizes) -> Tensor:
        matrix = (math.prod(shape), self.rank)
        return reshape_last_axes(parameters["factor"], len(shape) + 1, matrix)

    def _capacitance(
        self, parameters: Parameters, shape: Sizes
    ) -> tuple[Tensor, Tensor]:
        """Returns `G = diag(exp(log_scale))^-1 F` and the root of `I + G^T G`."""
        inverse_scale = tf.exp(-flatten_weights(parameters["log_scale"], shape))
        factor = inverse_scale[..., tf.newaxis] * self._flat_factor(parameters, shape)
        gram = tf.linalg.matmul(factor, factor, transpose_a=True)
        identity = tf.eye(self.rank, dtype=gram.dtype)
        return factor, tf.linalg.cholesky(identity + gram)
