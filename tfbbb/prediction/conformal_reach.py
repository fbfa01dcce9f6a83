"""Thresholds of conformal intervals and prediction sets, and the intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tfbbb.base import array_ops as ops
from tfbbb.base.types import ArrayLike

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
    groups: np.ndarray | None = None,
    group_scores: Sequence[Scores] = (),
) -> np.ndarray:
    """Returns the greatest score that intervals or sets of a level contain, [..., k].

    This is the j-th smallest score, `j = ceil((n + 1) * level)`, of each target, and
    infinity for j > n: n scores say nothing about such a level. Scores are sorted,
    [k, n] for n held-out rows; so are those of all targets together, if they follow.

    With groups, each row gets the result of the scores of its group, [rows, ..., k]: of
    its index in `group_scores`, from 1, or of all rows for 0. So does a level that the
    scores of a group say nothing about.
    """
    reach = _reach(scores, level)
    if groups is None:
        return reach
    reaches = [reach]
    for scores_of_group in group_scores:
        own = _reach(scores_of_group, level)
        reaches.append(np.where(np.isfinite(own), own, reach))
    return np.stack(reaches)[groups]


def bounds_of_scores(
    scores: np.ndarray,
    quantiles: Callable[[ArrayLike], np.ndarray],
    *,
    discrete: bool = False,
    limits: Sequence[float] | None = None,
) -> np.ndarray:
    """Returns lower and upper bounds of intervals, [rows, 2, Q, ..., k].

    The interval of a score s lies between the quantiles of the levels `Phi(-s)` and
    `Phi(s)`. Beyond `FARTHEST` it is the interval there, longer by the factor
    `s / FARTHEST` about its centre, within the limits. Each interval holds those of
    smaller scores. An infinite score has an infinite interval. Intervals of integers
    (`discrete`) get half an integer on both sides before they become longer.
    Scores are [rows, Q, ..., k], or [1, Q, ..., k] for all rows, and `quantiles` takes
    levels of the shape of the scores.
    """
    scores = rounded_up(scores, discrete)
    tails = 0.5 * ops.erfc(np.minimum(scores, FARTHEST) * math.sqrt(0.5))
    found = quantiles(np.concatenate([tails, 1.0 - tails], axis=1))
    lower, upper = np.split(found, 2, axis=1)
    return _lengthened(lower, upper, scores, discrete, limits)


def rounded_up(scores: np.ndarray, discrete: bool) -> np.ndarray:
    """Returns scores that hold equal scores of integers in spite of rounding."""
    if not discrete:
        return scores
    return scores * (1.0 + _ROUNDING_OF_SCORES) + _ROUNDING_OF_SCORES


def half_of(lower: np.ndarray, upper: np.ndarray, discrete: bool) -> np.ndarray:
    """Returns half the length of an interval; of integers, with half of one more."""
    return 0.5 * (upper - lower) + (0.5 if discrete else 0.0)


def _lengthened(
    lower: np.ndarray,
    upper: np.ndarray,
    score: np.ndarray,
    discrete: bool,
    limits: Sequence[float] | None,
) -> np.ndarray:
    """Returns bounds [rows, 2, Q, ..., k], longer for scores beyond `FARTHEST`."""
    factor = np.maximum(score / FARTHEST, 1.0)
    centre = 0.5 * (lower + upper)
    with np.errstate(invalid="ignore"):  # Infinite ends get their places below.
        half = factor * half_of(lower, upper, discrete)
        ends = np.stack([centre - half, centre + half], axis=1)
    if discrete:
        ends = np.stack([np.ceil(ends[:, 0]), np.floor(ends[:, 1])], axis=1)
    if limits is not None:
        ends = np.clip(ends, limits[0], limits[1])
    infinite = np.array([-np.inf, np.inf]).reshape(2, *[1] * (lower.ndim - 1))
    ends = np.where(np.isfinite(score)[:, np.newaxis], ends, infinite)
    is_longer = (factor > 1.0)[:, np.newaxis]
    return np.where(is_longer, ends, np.stack([lower, upper], axis=1))


def _reach(scores: Scores, level: ArrayLike) -> np.ndarray:
    num_rows = len(scores[0])
    rank = np.ceil((num_rows + 1.0) * (np.asarray(level, np.float64) - _ROUNDING))
    index = np.clip(rank.astype(np.int32) - 1, 0, num_rows)
    reaches = np.pad(np.array(scores), [(0, 0), (0, 1)], constant_values=np.inf)
    return reaches.T[index]
