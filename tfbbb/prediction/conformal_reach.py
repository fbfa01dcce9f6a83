"""Thresholds of conformal intervals and prediction sets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfbbb.base.array_library import numpy_of
from tfbbb.base.types import ArrayLike, Tensor

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

    Example:

    >>> conformal_reach([[0.1, 0.3, 1.5, 2.0]], 0.6)
    array([1.5])

    Args:
        scores: Sorted scores of n held-out rows for each target, [k, n].
        level: Probabilities of the intervals or sets, [...].
        groups: Index of each row's group in `group_scores`, from 1, and 0 for a row
            without a group, [rows]. None for no groups.
        group_scores: Sorted scores of the held-out rows of each group, [k, n] each.

    Returns:
        [..., k]; with groups [rows, ..., k].
    """
    reach = _reach(scores, level)
    if groups is None:
        return reach
    xp, reaches = numpy_of(level, groups), [reach]
    for scores_of_group in group_scores:
        own = _reach(scores_of_group, level)
        reaches.append(xp.where(xp.isfinite(own), own, reach))
    return xp.take(xp.stack(reaches), groups, axis=0)


def _reach(scores: Scores, level: ArrayLike) -> Tensor:
    xp, num_rows = numpy_of(level), len(scores[0])
    rank = xp.ceil((num_rows + 1.0) * (xp.asarray(level, np.float64) - _ROUNDING))
    index = xp.clip(xp.asarray(rank, np.int32) - 1, 0, num_rows)
    reaches = np.pad(np.array(scores), [(0, 0), (0, 1)], constant_values=np.inf)
    return xp.take(xp.asarray(reaches.T), index, axis=0)
