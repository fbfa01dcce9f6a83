"""The inverse of distribution functions, of real numbers and of integers."""

from __future__ import annotations

import math
from collections.abc import Callable

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import tf
from tfbbb.base.types import Tensor

_MOST_STEPS = 200
# Levels nearer to 0 or 1 are clipped to these, so that every bracket is finite.
SMALLEST_LEVEL, LARGEST_LEVEL = 1e-300, 1.0 - 2.0**-53
_SQRT_2_PI = math.sqrt(2.0 * math.pi)

Function = Callable[[Tensor], Tensor]
# The values found, the ends of their brackets, the size of the last steps, which of
# them still move, and the first widths of the brackets.
Search = tuple[Tensor, ...]


def inverted(
    cdf: Function,
    prob: Function,
    levels: Tensor,
    low: Tensor,
    high: Tensor,
    start: Tensor | None = None,
) -> Tensor:
    """Returns the values at which `cdf` reaches `levels`, in float64.

    Newton's method for the normal quantiles of `cdf` and `levels`, which differ less
    from a straight line than `cdf` does, and bisection where a step would leave the
    bracket or not halve the previous step (a mixture of unequal widths can make it
    cycle). Brackets over several orders of magnitude are halved in the log. It ends
    when `cdf` equals the level in double precision, or at steps of 10^-12 of both
    quantile and bracket.
    """
    search = first_search(low, high, start)
    return searched(cdf, prob, levels, search, _MOST_STEPS)[0]


def first_search(low: Tensor, high: Tensor, start: Tensor | None = None) -> Search:
    """Returns what `searched` begins with."""
    low, high = _any_shape(low), _any_shape(high)
    start = _middle(low, high) if start is None else _any_shape(start)
    width = high - low
    return start, low, high, width, width > 0.0, width


def searched(
    cdf: Function, prob: Function, levels: Tensor, search: Search, most_steps: int
) -> Search:
    """Returns a search for the values of `inverted` after at most so many steps."""
    *state, width = search
    scores = ops.ndtri(levels)

    def step(
        index: Tensor,
        guess: Tensor,
        low: Tensor,
        high: Tensor,
        last: Tensor,
        moving: Tensor,
    ) -> tuple[Tensor, ...]:
        below, density = cdf(guess), prob(guess)
        low = ops.where(below < levels, guess, low)
        high = ops.where(below < levels, high, guess)
        score = ops.ndtri(below)
        slope = ops.divide_no_nan(density, ops.exp(-0.5 * ops.square(score)))
        newton = ops.divide_no_nan(scores - score, _SQRT_2_PI * slope)
        inside = (guess + newton >= low) & (guess + newton <= high) & (density > 0.0)
        trusted = inside & (ops.abs(newton) <= 0.5 * last)
        near = ops.abs(newton) <= 0.5 * ops.abs(guess)
        trusted = trusted & (near | ~_differ_in_size(low, high))
        moving = moving & (ops.abs(levels - below) > 1e-14 * levels)
        # A middle of much smaller size than the guess is lost in their difference.
        moved = ops.where(trusted, guess + newton, _middle(low, high))
        moved = ops.where(moving, moved, guess)
        size = ops.abs(moved - guess)
        moves = (size > 1e-12 * width) | (size > 1e-12 * ops.abs(moved))
        return index + 1, moved, low, high, size, moving & moves

    _, *state = ops.while_loop(
        lambda index, guess, low, high, last, moving: (
            ops.reduce_any(moving) & (index < most_steps)
        ),
        step,
        (0, *state),
    )
    return *state, width


def _any_shape(values: Tensor) -> Tensor:
    """Forgets the sizes known while tracing, which a loop would have to keep."""
    if not ops.is_tensor(values):
        return values
    return tf.raw_ops.PlaceholderWithDefault(
        input=values, shape=[None] * len(values.shape)
    )


def _differ_in_size(low: Tensor, high: Tensor) -> Tensor:
    """Returns whether two numbers of the same sign are of different orders."""
    return ((low > 0.0) & (high > 4.0 * low)) | ((high < 0.0) & (low < 4.0 * high))


def _middle(low: Tensor, high: Tensor) -> Tensor:
    """Returns the mean of two ends, the geometric mean if they differ in size."""
    geometric = ops.sign(high) * ops.sqrt(ops.abs(low)) * ops.sqrt(ops.abs(high))
    return ops.where(_differ_in_size(low, high), geometric, 0.5 * low + 0.5 * high)


def least_integer(
    reaches: Callable[[Tensor], Tensor], below: Tensor, enough: Tensor
) -> Tensor:
    """Returns the least integer for which `reaches` is true, element by element."""

    def halved(below: Tensor, enough: Tensor) -> tuple[Tensor, Tensor]:
        middle = below + ops.floor(0.5 * (enough - below))
        # If the two are neighbours, the middle is `below` itself, and nothing changes.
        reached = reaches(middle) & (middle > below)
        return ops.where(reached, below, middle), ops.where(reached, middle, enough)

    _, enough = ops.while_loop(
        lambda below, enough: ops.reduce_any(enough - below > 1.0),
        halved,
        (below, enough),
        parallel_iterations=1,
    )
    return enough


def bracket_of_counts(
    levels: Tensor, mean: Tensor, variance: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns integers below and not below a quantile of counts, for `least_integer`.

    By Cantelli's inequality a quantile at level p lies between
    `mean - sqrt((1 - p) / p * variance)` and `mean + sqrt(p / (1 - p) * variance)`,
    whatever the distribution.
    """
    levels = ops.clip_by_value(levels, SMALLEST_LEVEL, LARGEST_LEVEL)
    odds, stddev = levels / (1.0 - levels), ops.sqrt(variance)
    below = ops.floor(mean - stddev / ops.sqrt(odds)) - 1.0
    enough = ops.ceil(mean + stddev * ops.sqrt(odds)) + 1.0
    return ops.maximum(below, -1.0), enough
