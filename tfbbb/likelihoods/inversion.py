"""The inverse of a distribution function."""

from collections.abc import Callable

import tensorflow as tf

_MOST_STEPS = 100

Function = Callable[[tf.Tensor], tf.Tensor]


def inverted(
    cdf: Function, prob: Function, levels: tf.Tensor, low: tf.Tensor, high: tf.Tensor
) -> tf.Tensor:
    """Returns where `cdf` reaches `levels`, in float64.

    Newton's method, falling back to bisection where a step would leave the bracket or
    not halve the step before (a mixture of unequal widths makes it circle), until it
    moves by less than one part in 10^12 of the bracket's width at the start.

    Args:
        cdf: A distribution function of float64.
        prob: Its density.
        levels: Levels; broadcast against the bracket.
        low: Lower end of a bracket of the quantiles.
        high: Its upper end, of the same shape.
    """
    tolerance = 1e-12 * (high - low)

    def step(
        index: tf.Tensor,
        guess: tf.Tensor,
        low: tf.Tensor,
        high: tf.Tensor,
        last: tf.Tensor,
    ) -> tuple[tf.Tensor, ...]:
        below, density = cdf(guess), prob(guess)
        low = tf.where(below < levels, guess, low)
        high = tf.where(below < levels, high, guess)
        newton = tf.math.divide_no_nan(levels - below, density)
        inside = (guess + newton >= low) & (guess + newton <= high) & (density > 0.0)
        move = tf.where(
            inside & (tf.abs(newton) <= 0.5 * last),
            newton,
            0.5 * (low + high) - guess,
        )
        move = tf.where(last > tolerance, move, 0.0)
        return index + 1, guess + move, low, high, tf.abs(move)

    _, found, *_ = tf.while_loop(
        lambda index, guess, low, high, last: (
            tf.reduce_any(last > tolerance) & (index < _MOST_STEPS)
        ),
        step,
        (tf.constant(0), 0.5 * (low + high), low, high, high - low),
    )
    return found
