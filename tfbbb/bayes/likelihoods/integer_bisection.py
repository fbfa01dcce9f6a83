"""The inverse of distribution functions of integers."""

from __future__ import annotations

from collections.abc import Callable

from tfbbb.base.lazy import tf
from tfbbb.base.types import Tensor

# Levels nearer to 0 or 1 are clipped to these, so that every bracket is finite.
_SMALLEST_LEVEL, _LARGEST_LEVEL = 1e-300, 1.0 - 2.0**-53


def least_integer(
    reaches: Callable[[tf.Tensor], tf.Tensor], below: Tensor, enough: Tensor
) -> tf.Tensor:
    """Returns the least integer for which `reaches` is true, element by element."""

    def halved(below: Tensor, enough: Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        middle = below + tf.floor(0.5 * (enough - below))
        # If the two are neighbours, the middle is `below` itself, and nothing changes.
        reached = reaches(middle) & (middle > below)
        return tf.where(reached, below, middle), tf.where(reached, middle, enough)

    _, enough = tf.while_loop(
        lambda below, enough: tf.reduce_any(enough - below > 1.0),
        halved,
        (below, enough),
        parallel_iterations=1,
    )
    return enough


def bracket_of_counts(
    levels: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns integers below and not below a quantile of counts, for `least_integer`.

    By Cantelli's inequality a quantile at level p lies between
    `mean - sqrt((1 - p) / p * variance)` and `mean + sqrt(p / (1 - p) * variance)`,
    whatever the distribution.
    """
    levels = tf.clip_by_value(levels, _SMALLEST_LEVEL, _LARGEST_LEVEL)
    odds, stddev = levels / (1.0 - levels), tf.sqrt(variance)
    below = tf.floor(mean - stddev / tf.sqrt(odds)) - 1.0
    enough = tf.math.ceil(mean + stddev * tf.sqrt(odds)) + 1.0
    return tf.maximum(below, -1.0), enough
