"""A free parameterisation of lower-triangular matrices with a positive diagonal."""

from __future__ import annotations

from tfbbb.base.lazy import tf
from tfbbb.base.types import ArrayLike, Tensor


def number_of_correlations(size: int) -> int:
    """Returns the number of entries strictly below the diagonal."""
    return size * (size - 1) // 2


def cholesky_factor(log_scale: Tensor, correlations: Tensor) -> Tensor:
    """Returns `L = diag(exp(log_scale)) (I + C)`, C strictly lower triangular.

    The entries below the diagonal are in units of the scale of their row, so that one
    learning rate suits small and large weights.

    Args:
        log_scale: [..., n].
        correlations: Entries of C, [..., n (n - 1) / 2].

    Returns:
        [..., n, n].
    """
    import tensorflow_probability as tfp

    lower = tfp.math.fill_triangular(correlations)
    no_padding = [[0, 0]] * (len(lower.shape) - 2)
    strictly_lower = tf.pad(lower, [*no_padding, [1, 0], [0, 1]])
    factor = tf.linalg.set_diag(strictly_lower, tf.ones_like(strictly_lower[..., 0]))
    return tf.exp(log_scale)[..., tf.newaxis] * factor


def solve(factor: Tensor, values: ArrayLike) -> Tensor:
    """Returns `L^-1 v` of vectors, [..., n]."""
    return tf.linalg.triangular_solve(factor, values[..., tf.newaxis])[..., 0]
