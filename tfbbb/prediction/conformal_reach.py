"""Thresholds of conformal intervals and prediction sets, and the intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tfbbb.base.array_library import numpy_of, special_of
from tfbbb.base.lazy import tf
from tfbbb.base.types import ArrayLike, Tensor

# The score of an interval between the quantiles of 1e-6 and 1 - 1e-6. Beyond it, a
# distribution function near 1 has too few digits, and intervals become longer instead.
FARTHEST = 4.75
# Live and exported models compute equal scores of integers, up to this difference.
_ROUNDING_OF_SCORES = 1e-6

# Levels come in single precision too, in which few of interest are exact.
_ROUNDING = 1e-7

Scores = Sequence[Sequence[float]]


def conformal_reach(
    scores: Scores,
    level: ArrayLike,
    groups: Tensor | None = None,
    group_scores: Sequence[Scores] = (),
) -> Tensor:
    """Returns the greatest score that intervals or sets of a level contain, [..., k].

    This is the j-th smallest score, `j = ceil((n + 1) * level)`, of each target, and
    infinity for j > n: n scores say nothing about such a level.

    With groups, each row gets the result of the scores of its group. A level that the
    scores of a group say nothing about gets the result of all scores.

    Scores are sorted, [k, n] for n held-out rows. A row's group is its index in
    `group_scores`, from 1, or 0 for none, [rows]; the result is then [rows, ..., k].
    """
    reach = _reach(scores, level)
    if groups is None:
        return reach
    xp, reaches = numpy_of(level, groups), [reach]
    for scores_of_group in group_scores:
        own = _reach(scores_of_group, level)
        reaches.append(xp.where(xp.isfinite(own), own, reach))
    return xp.take(xp.stack(reaches), groups, axis=0)


def conformal_bounds(
    reach: Callable[[ArrayLike, Tensor | None], Tensor],
    quantiles: Callable[[ArrayLike], Tensor],
    levels: ArrayLike,
    groups: Tensor | None = None,
    *,
    discrete: bool = False,
    limits: Sequence[float] | None = None,
) -> Tensor:
    """Returns lower and upper bounds of conformal intervals, [rows, 2, Q, k].

    The interval of a score s lies between the quantiles of the levels `Phi(-s)` and
    `Phi(s)`. Beyond `FARTHEST` it is the interval there, longer by the factor
    `s / FARTHEST` about its centre, within the limits. Each interval holds those of
    smaller scores. An infinite score has an infinite interval. Intervals of integers
    (`discrete`) get half an integer on both sides before they become longer.
    `quantiles` of levels [L] are [rows, L, k], and `reach` is as `conformal_reach`.
    """
    xp, special = numpy_of(levels, groups), special_of(levels, groups)
    places = None
    if groups is not None:
        # Quantiles are searched for at the scores of those groups that rows have.
        groups, places = _distinct(groups)
    scores = rounded_up(reach(levels, groups), discrete)
    tails = 0.5 * special.erfc(math.sqrt(0.5) * xp.minimum(scores, FARTHEST))
    bounds = []
    for target in range(scores.shape[-1]):
        score, tail = scores[..., target], xp.reshape(tails[..., target], [-1])
        found = quantiles(xp.concatenate([tail, 1.0 - tail]))[..., target]
        ends = xp.split(found, 2, axis=1)
        if places is not None:
            numbers = xp.asarray(xp.cumsum(xp.ones_like(score[0])), np.int64)
            index = places[:, np.newaxis] * numbers[-1] + numbers - 1
            ends = [xp.take_along_axis(end, index, axis=1) for end in ends]
            score = xp.take(score, places, axis=0)
        bounds.append(_lengthened(ends[0], ends[1], score, discrete, limits))
    return xp.stack(bounds, axis=-1)


def rounded_up(scores: Tensor, discrete: bool) -> Tensor:
    """Returns scores that hold equal scores of integers in spite of rounding."""
    if not discrete:
        return scores
    return scores * (1.0 + _ROUNDING_OF_SCORES) + _ROUNDING_OF_SCORES


def half_of(lower: Tensor, upper: Tensor, discrete: bool) -> Tensor:
    """Returns half the length of an interval; of integers, with half of one more."""
    return 0.5 * (upper - lower) + (0.5 if discrete else 0.0)


def _lengthened(
    lower: Tensor,
    upper: Tensor,
    score: Tensor,
    discrete: bool,
    limits: Sequence[float] | None,
) -> Tensor:
    """Returns bounds [rows, 2, Q], longer where the score is beyond `FARTHEST`."""
    xp = numpy_of(lower)
    factor = xp.maximum(score / FARTHEST, 1.0)
    centre, half = 0.5 * (lower + upper), factor * half_of(lower, upper, discrete)
    ends = centre - half, centre + half
    if discrete:
        ends = xp.ceil(ends[0]), xp.floor(ends[1])
    if limits is not None:
        ends = xp.maximum(ends[0], limits[0]), xp.minimum(ends[1], limits[1])
    known = xp.isfinite(score)
    ends = xp.where(known, ends[0], -np.inf), xp.where(known, ends[1], np.inf)
    longer = factor > 1.0
    return xp.stack(
        [xp.where(longer, ends[0], lower), xp.where(longer, ends[1], upper)], axis=1
    )


def _distinct(groups: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the groups that rows have, [g], and the place of each row's, [rows]."""
    if numpy_of(groups) is np:
        return np.unique(groups, return_inverse=True)
    return tf.unique(groups, tf.int64)


def _reach(scores: Scores, level: ArrayLike) -> Tensor:
    xp, num_rows = numpy_of(level), len(scores[0])
    rank = xp.ceil((num_rows + 1.0) * (xp.asarray(level, np.float64) - _ROUNDING))
    index = xp.clip(xp.asarray(rank, np.int32) - 1, 0, num_rows)
    reaches = np.pad(np.array(scores), [(0, 0), (0, 1)], constant_values=np.inf)
    return xp.take(xp.asarray(reaches.T), index, axis=0)
