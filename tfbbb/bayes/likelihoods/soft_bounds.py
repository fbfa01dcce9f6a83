"""Smooth bounds of parameters, which leave the values within them as they are."""

from __future__ import annotations

from tfbbb.base.lazy import tf
from tfbbb.base.types import Tensor


def soft_clip(values: tf.Tensor, low: Tensor, high: Tensor, margin: float) -> tf.Tensor:
    """Returns values between `low` and `high`, [k], as they are, others near them.

        b + d m / (m + |d|),    d = v - b,

    for values v beyond the nearest bound b, less than the margin m outside. The slope
    falls with the square of the distance d, not exponentially: a value far outside can
    still learn.
    """
    inside = tf.clip_by_value(values, low, high)
    distance = values - inside
    return inside + distance / (1.0 + tf.abs(distance) / margin)


def soft_limit(values: tf.Tensor, limit: Tensor) -> tf.Tensor:
    """Returns positive values up to half the limit as they are, others below it."""
    half = 0.5 * limit
    excess = tf.nn.relu(values - half)
    return tf.minimum(values, half) + excess / (1.0 + excess / half)
