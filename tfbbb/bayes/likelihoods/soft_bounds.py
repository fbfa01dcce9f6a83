"""Smooth bounds of parameters, which leave the values within them as they are."""

from __future__ import annotations

from tfbbb.base.lazy import tf
from tfbbb.base.types import Tensor


def soft_clip(values: tf.Tensor, low: Tensor, high: Tensor, margin: float) -> tf.Tensor:
    """Returns values between `low` as they are, others less than `margin` outside.

        b + d m / (m + |d|),    d = v - b,

    for values v beyond the nearest bound b. The slope is continuous and falls with the
    square of the distance d, not exponentially: a value far outside can still learn.

    Args:
        values: [..., k].
        low: The least value that is returned as it is, [k].
        high: The greatest such value, [k].
        margin: Limit m of the distance from the bounds, positive.
    """
    inside = tf.clip_by_value(values, low, high)
    distance = values - inside
    return inside + distance / (1.0 + tf.abs(distance) / margin)


def soft_limit(values: tf.Tensor, limit: Tensor) -> tf.Tensor:
    """Returns values up to half the limit as they are, others below the limit.

    Args:
        values: Positive numbers, [..., k].
        limit: Positive numbers that broadcast against the values.
    """
    half = 0.5 * limit
    excess = tf.nn.relu(values - half)
    return tf.minimum(values, half) + excess / (1.0 + excess / half)
