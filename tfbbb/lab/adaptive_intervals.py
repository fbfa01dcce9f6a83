"""Intervals that follow what comes true, row by row."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

__all__ = [
    *("LEVELS", "AdaptiveIntervals", "adapt_intervals", "half_lengths"),
    "interval_scores",
]

# The levels that are followed; `at` interpolates between them.
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
_ALPHA = 1.0 - np.array(LEVELS)
# The step of the logarithm of a length after an error. Ten times as fast as drifts of
# hundreds of rows; without drift, intervals become 4 % longer.
STEP = 0.1
# The farthest that an end may be from the centre of the model's interval, in half
# lengths; inverted, the least factor of the length.
LARGEST = 8.0
# Beyond `LARGEST` of every interval: rows may be as far off as they like.
_FARTHEST = 1e6
# Levels may be in single precision.
_SAME_LEVEL = 1e-6


@dataclass(frozen=True)
class AdaptiveIntervals:
    """The adapted ends of the intervals of some rows.

    Of an interval with the centre c and half the length h, the score of a target is
    `s = (y - c) / h`, and the adapted interval is `[c + l h, c + u h]`, from l = -1 and
    u = 1 on. After each row, with the miscoverage `alpha = 1 - level`,

        log(u - l)  +=  step (1[s < l or s > u] - alpha)

    which is adaptive conformal inference (Gibbs and Candes 2021) for the logarithm of
    the length: a missed target makes the interval longer, others make it shorter. Each
    end moves by its own errors, at the rate `alpha / 2`, so that the interval follows a
    shift without becoming longer. While no bound is met, the errors of any n rows add
    up to

        sum(1[s < l or s > u] - alpha) = log((u - l)_end / (u - l)_start) / step

    so their mean is within `log(64) / (step n)` of alpha, whatever the rows are. No
    feedback moves an end farther than 8 h from c, or makes the interval shorter than
    1/8 of that of the model.

    A row may be wider than all rows of feedback, because it lies beyond the training
    rows. Their errors say nothing of its h, so its ends move in the unit
    `m = min(h, widest)`:

        [c - (h - m) + l m,  c + (h - m) + u m]

    and its target is missed if it is outside of that. `widest` is the greatest h of the
    feedback, but a row raises it by a tenth at most, as it does the length: one row of
    feedback that is far away would else undo the bound.

    Attributes:
        ends: l and u of each target and level, [k, levels, 2].
        widest: The greatest half length of each target and level, [k, levels]; 0 for no
            bound, before the first one.

    Example:

    >>> import numpy as np
    >>> errors = np.random.default_rng(0).normal(scale=2.0, size=(1000, 1))
    >>> reach = np.array([0.67, 1.28, 1.645, 1.96, 2.58])[:, np.newaxis]
    >>> upper = np.tile(reach, (1000, 1, 1))
    >>> scores = interval_scores(errors, -upper, upper, discrete=False)
    >>> adaptive = AdaptiveIntervals.start().update(scores)
    >>> lower, upper = adaptive.at([0.9])[0, 0]
    >>> bool(1.5 < (upper - lower) / 2 < 2.5)
    True
    """

    ends: np.ndarray
    widest: np.ndarray

    @classmethod
    def start(cls, num_targets: int = 1) -> Self:
        """Returns the ends before the first row, which change nothing."""
        shape = (num_targets, len(LEVELS))
        return cls(np.tile([-1.0, 1.0], (*shape, 1)), np.zeros(shape))

    @property
    def factors(self) -> np.ndarray:
        """The factors of the lengths, [k, levels]."""
        factors: np.ndarray = (self.ends[..., 1] - self.ends[..., 0]) / 2.0
        return factors

    def update(
        self, scores: np.ndarray, halves: np.ndarray | None = None
    ) -> "AdaptiveIntervals":
        """Returns the ends after more rows, in their order.

        Args:
            scores: The scores of their targets, [n, k, levels]: `interval_scores`.
            halves: The half lengths of their intervals, [n, k, levels], of which the
                greatest one bounds how far later rows move; None for no bound.
        """
        ends, widest = self.ends, self.widest
        if scores.shape[1:] != widest.shape or np.isnan(scores).any():
            raise ValueError(
                f"`scores` must be numbers of the shape [n, {widest.shape[0]}, "
                f"{widest.shape[1]}]. Received: an array of shape {scores.shape}"
            )
        for row, score in enumerate(scores):
            half = np.zeros(score.shape) if halves is None else halves[row]
            unit = _unit(half, widest)
            ratio = np.divide(half, unit, out=np.ones_like(half), where=unit > 0.0)
            ends = _move_ends(ends, score, ratio)
            raised = np.clip(half, widest, widest * math.exp(STEP))
            widest = np.where(widest > 0.0, raised, half)
        return AdaptiveIntervals(ends, widest)

    def at(self, levels: Sequence[float]) -> np.ndarray:
        """Returns the ends at some levels, [levels, k, 2].

        They are linear in the logarithm of `1 - level` between the levels that are
        followed, and constant beyond them.
        """
        known, asked = (-np.log1p(-np.asarray(x)) for x in (LEVELS, levels))
        found = [
            [np.interp(asked, known, values) for values in of_target.T]
            for of_target in self.ends
        ]
        return np.moveaxis(np.array(found), -1, 0)

    def widest_at(self, levels: Sequence[float]) -> np.ndarray:
        """Returns the greatest half lengths at some levels, [levels, k].

        They are those of the next level that is followed, and beyond the last one
        proportional to the logarithm of `1 - level`, as of an exponential tail.
        """
        asked = np.asarray(levels)
        places = np.searchsorted(LEVELS, asked - _SAME_LEVEL)
        beyond = np.log1p(-asked) / math.log1p(-LEVELS[-1])
        found = self.widest[:, np.minimum(places, len(LEVELS) - 1)]
        widest: np.ndarray = (found * np.maximum(beyond, 1.0)).T
        return widest


def interval_scores(
    targets: np.ndarray, lower: np.ndarray, upper: np.ndarray, *, discrete: bool
) -> np.ndarray:
    """Returns the scores of targets by their intervals, [n, k, levels].

    Args:
        targets: What came true, [n, k].
        lower: Lower bounds of the intervals at `LEVELS`, [n, levels, k].
        upper: Their upper bounds.
        discrete: Whether targets are counts.
    """
    centre, half = _centre_and_half(lower, upper, discrete)
    distance = targets[:, np.newaxis] - centre
    scores = distance / np.maximum(half, np.finfo(np.float32).tiny)
    return np.moveaxis(np.clip(scores, -_FARTHEST, _FARTHEST), 1, 2)


def half_lengths(lower: np.ndarray, upper: np.ndarray, *, discrete: bool) -> np.ndarray:
    """Returns half the lengths of intervals, [n, k, levels]."""
    return np.moveaxis(_centre_and_half(lower, upper, discrete)[1], 1, 2)


def adapt_intervals(
    lower: np.ndarray,
    upper: np.ndarray,
    ends: np.ndarray,
    levels: Sequence[float],
    *,
    discrete: bool,
    widest: np.ndarray | float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the bounds of the adapted intervals, [n, levels, k] each.

    Args:
        lower: Lower bounds of the intervals to adapt, [n, levels, k].
        upper: Their upper bounds.
        ends: Of each level, `AdaptiveIntervals.at`.
        levels: The levels.
        discrete: Whether targets are counts, which the bounds then are too.
        widest: `AdaptiveIntervals.widest_at`; 0 for no bound.

    Each level is adapted by its own errors. Where the intervals of two levels would
    cross, their bounds are sorted, so that the higher level holds the lower one
    (Chernozhukov, Fernandez-Val and Galichon 2010).
    """
    centre, half = _centre_and_half(lower, upper, discrete)
    unit = _unit(half, widest)
    beyond = half - unit
    lower = centre - beyond + ends[..., 0] * unit
    upper = centre + beyond + ends[..., 1] * unit
    if discrete:
        nearest = np.round((lower + upper) / 2.0)
        lower = np.maximum(np.minimum(np.ceil(lower), nearest), 0.0)
        upper = np.maximum(np.floor(upper), lower)
    order = np.argsort(levels, kind="stable")
    lower[:, order] = np.sort(lower, axis=1)[:, ::-1]
    upper[:, order] = np.sort(upper, axis=1)
    return lower, upper


def _unit(half: np.ndarray, widest: np.ndarray | float) -> np.ndarray:
    """Returns the unit in which the ends of intervals move."""
    bound = np.where(np.asarray(widest) > 0.0, widest, np.inf)
    return np.minimum(half, bound)


def _move_ends(ends: np.ndarray, score: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """Returns the ends of intervals after one row, each moved by its own error."""
    lower, upper = ends[..., 0], ends[..., 1]
    above = ratio * score - (ratio - 1.0) > upper
    below = ratio * score + (ratio - 1.0) < lower
    upper = lower + (upper - lower) * np.exp(STEP * (above - _ALPHA / 2.0))
    upper = np.minimum(upper, LARGEST)
    lower = upper - (upper - lower) * np.exp(STEP * (below - _ALPHA / 2.0))
    lower = np.maximum(lower, -LARGEST)
    half = np.maximum((upper - lower) / 2.0, 1.0 / LARGEST)
    centre = np.clip((upper + lower) / 2.0, half - LARGEST, LARGEST - half)
    return np.stack([centre - half, centre + half], axis=-1)


def _centre_and_half(
    lower: np.ndarray, upper: np.ndarray, discrete: bool
) -> tuple[np.ndarray, np.ndarray]:
    lower, upper = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
    return (lower + upper) / 2.0, (upper - lower) / 2.0 + (0.5 if discrete else 0.0)
