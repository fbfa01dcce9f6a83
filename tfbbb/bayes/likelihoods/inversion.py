"""The inverse of distribution functions, of real numbers and of integers."""

from __future__ import annotations

import math
from collections.abc import Callable

from tfbbb.base.lazy import tf
from tfbbb.base.types import Tensor

_MOST_STEPS = 200
# Levels nearer to 0 or 1 are clipped to these, so that every bracket is finite.
_SMALLEST_LEVEL, _LARGEST_LEVEL = 1e-300, 1.0 - 2.0**-53
_SQRT_2_PI = math.sqrt(2.0 * math.pi)

Function = Callable[[Tensor], Tensor]


def inverted(
    cdf: Function,
    prob: Function,
    levels: tf.Tensor,
    low: tf.Tensor,
    high: tf.Tensor,
    start: tf.Tensor | None = None,
) -> tf.Tensor:
    """Returns the values at which `cdf` reaches `levels`, in float64.

    Newton's method for the normal quantiles of `cdf` and `levels`, which differ less
    from a straight line than `cdf` does, and bisection where a step would leave the
    bracket or not halve the previous step (a mixture of unequal widths can make it
    cycle). Brackets over several orders of magnitude are halved in the log. It ends
    when `cdf` equals the level in double precision, or at steps of 10^-12 of both
    quantile and bracket.
    """
    low, high = _any_shape(low), _any_shape(high)
    width, scores = high - low, tf.math.ndtri(levels)
    start = _middle(low, high) if start is None else _any_shape(start)

    def step(
        index: tf.Tensor,
        guess: tf.Tensor,
        low: tf.Tensor,
        high: tf.Tensor,
        last: tf.Tensor,
        moving: tf.Tensor,
    ) -> tuple[tf.Tensor, ...]:
        below, density = cdf(guess), prob(guess)
        low = tf.where(below < levels, guess, low)
        high = tf.where(below < levels, high, guess)
        score = tf.math.ndtri(below)
        slope = tf.math.divide_no_nan(density, tf.exp(-0.5 * tf.square(score)))
        newton = tf.math.divide_no_nan(scores - score, _SQRT_2_PI * slope)
        inside = (guess + newton >= low) & (guess + newton <= high) & (density > 0.0)
        trusted = inside & (tf.abs(newton) <= 0.5 * last)
        near = tf.abs(newton) <= 0.5 * tf.abs(guess)
        trusted &= near | ~_differ_in_size(low, high)
        moving &= tf.abs(levels - below) > 1e-14 * levels
        # A middle of much smaller size than the guess is lost in their difference.
        moved = tf.where(trusted, guess + newton, _middle(low, high))
        moved = tf.where(moving, moved, guess)
        size = tf.abs(moved - guess)
        moving &= (size > 1e-12 * width) | (size > 1e-12 * tf.abs(moved))
        return index + 1, moved, low, high, size, moving

    _, found, *_ = tf.while_loop(
        lambda index, guess, low, high, last, moving: (
            tf.reduce_any(moving) & (index < _MOST_STEPS)
        ),
        step,
        (tf.constant(0), start, low, high, width, width > 0.0),
    )
    return found


def _any_shape(values: tf.Tensor) -> tf.Tensor:
    """Forgets the sizes known while tracing, which a loop would have to keep."""
    return tf.raw_ops.PlaceholderWithDefault(
        input=values, shape=[None] * len(values.shape)
    )


def _differ_in_size(low: tf.Tensor, high: tf.Tensor) -> tf.Tensor:
    """Returns whether two numbers of the same sign are of different orders."""
    return ((low > 0.0) & (high > 4.0 * low)) | ((high < 0.0) & (low < 4.0 * high))


def _middle(low: tf.Tensor, high: tf.Tensor) -> tf.Tensor:
    """Returns the mean of two ends, the geometric mean if they differ in size."""
    geometric = tf.sign(high) * tf.sqrt(tf.abs(low)) * tf.sqrt(tf.abs(high))
    return tf.where(_differ_in_size(low, high), geometric, 0.5 * low + 0.5 * high)


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
