"""The normal posterior with a full covariance matrix."""

from __future__ import annotations

import math

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import tf
from tfbbb.base.types import ArrayLike, Initializer, Tensor
from tfbbb.bayes.posteriors.posterior import (
    Declared,
    NormalPosterior,
    Parameters,
    Sizes,
    flatten_weights,
    register,
    unflatten_weights,
)


@register(
    "full_covariance_normal",
    "A normal with a full covariance matrix, for at most 4096 weights.",
)
class FullCovarianceNormal(NormalPosterior):
    """One normal over all the weights of a tensor, with its full covariance.

    `q(w) = N(w; mean, L L^T)`

    with L lower triangular. It holds the exact posterior of a linear-Gaussian layer.
    n weights take n (n + 1) / 2 numbers for L and as many operations for a draw, so
    it is for small tensors: n is at most 4096.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(1, posterior="full_covariance_normal")
    >>> layer.build((None, 3))
    >>> tuple(layer.kernel.variables["correlations"].shape)
    (3,)
    """

    def covariance_size(self, shape: Sizes) -> int:
        return math.prod(shape)

    def declared(self, shape: Sizes, fan_in: int, mean: Initializer) -> Declared:
        size = math.prod(shape)
        return {
            "mean": (shape, mean),
            "log_scale": ((size,), self.initial_log_scale(fan_in)),
            "correlations": ((number_of_correlations(size),), "zeros"),
        }

    def scale_tril(self, parameters: Parameters) -> Tensor:
        """Returns the Cholesky factor L of the covariance, [..., n, n]."""
        return cholesky_factor(parameters["log_scale"], parameters["correlations"])

    def variance(self, parameters: Parameters, shape: Sizes) -> Tensor:
        variances = tf.reduce_sum(tf.square(self.scale_tril(parameters)), axis=-1)
        return unflatten_weights(variances, shape)

    def perturb(self, parameters: Parameters, noise: Tensor, shape: Sizes) -> Tensor:
        flat_noise = flatten_weights(noise, shape)
        deviations = tf.linalg.matvec(self.scale_tril(parameters), flat_noise)
        return unflatten_weights(deviations, shape)

    def squared_distance(
        self, parameters: Parameters, deviations: Tensor, shape: Sizes
    ) -> Tensor:
        flat = flatten_weights(deviations, shape)
        standardized = solve(self.scale_tril(parameters), flat)
        return tf.reduce_sum(tf.square(standardized), axis=-1)

    def log_volume(self, parameters: Parameters, shape: Sizes) -> Tensor:
        return tf.reduce_sum(parameters["log_scale"], axis=-1)


def number_of_correlations(size: int) -> int:
    """Returns the number of entries strictly below the diagonal."""
    return size * (size - 1) // 2


def cholesky_factor(log_scale: Tensor, correlations: Tensor) -> Tensor:
    """Returns `L = diag(exp(log_scale)) (I + C)`, [..., n, n].

    C is strictly lower triangular. Its entries [..., n (n - 1) / 2] are in units of the
    scale of their row, so that one learning rate suits small and large weights.
    """
    lower = ops.fill_triangular(correlations)
    no_padding = [[0, 0]] * (len(lower.shape) - 2)
    strictly_lower = ops.pad(lower, [*no_padding, [1, 0], [0, 1]])
    factor = ops.set_diag(strictly_lower, ops.ones_like(strictly_lower[..., 0]))
    return ops.exp(log_scale)[..., ops.newaxis] * factor


def solve(factor: Tensor, values: ArrayLike) -> Tensor:
    """Returns `L^-1 v` of vectors, [..., n]."""
    return ops.triangular_solve(factor, values[..., ops.newaxis])[..., 0]
