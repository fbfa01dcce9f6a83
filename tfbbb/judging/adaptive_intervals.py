"""Intervals and prediction sets that follow what comes true, row by row."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from tfbbb.base.types import Config

# The levels that are followed; `ends` interpolates between them.
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
_ALPHA = 1.0 - np.array(LEVELS)
# The step of the logarithm of a length after an error. Ten times as fast as drifts of
# hundreds of rows; without drift, intervals become 4 % longer.
STEP = 0.1
# The farthest that an end may be from the centre of the version's interval, in half
# lengths; inverted, the least factor of the length.
LARGEST = 8.0
# Beyond `LARGEST` of every interval: rows may be as far off as they like.
_FARTHEST = 1e6
# Levels that a request asks for are in single precision.
_SAME_LEVEL = 1e-6
# In single precision, larger levels are 1.
_LEAST_TAIL = 1e-7
# The levels at which `set_scores` looks for a class: factors of -log(1 - level) from
# those of the level 0.5 and the factor 1/8, in steps of a tenth.
_FIRST = -math.log1p(-LEVELS[0]) / LARGEST
_LADDER = _FIRST * 1.1 ** np.arange(
    math.ceil(math.log(-math.log(_LEAST_TAIL) / _FIRST) / math.log(1.1))
)
LADDER = (-np.expm1(-_LADDER)).tolist()


@dataclass(frozen=True)
class AdaptiveEnds:
    """The adapted ends of the intervals of some rows, or factors of prediction sets.

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
    1/8 of that of the version.

    A row may be wider than all rows of feedback, because it lies beyond the training
    rows. Their errors say nothing of its h, so its ends move in the unit
    `m = min(h, widest)`:

        [c - (h - m) + l m,  c + (h - m) + u m]

    and its target is missed if it is outside of that. `widest` is the greatest h of the
    feedback, but a row raises it by a tenth at most, as it does the length: one row of
    feedback that is far away would else undo the bound.

    Of a prediction set, the score is `log(1 - q) / log(1 - level)` with the least level
    q whose set holds the class, and the adapted set is that of the level
    `1 - (1 - level)^u`, with the only end u between 1/8 and 8, and l = 0.

    Attributes:
        ends: l and u of each target and level, [k, levels, 2]; of prediction sets u
            alone, [1, levels, 1].
        widest: The greatest half length of each target and level, [k, levels]; 0 for no
            bound, before the first one.
        num_rows: Number of rows so far.
    """

    ends: np.ndarray
    widest: np.ndarray
    num_rows: int = 0

    @classmethod
    def start(cls, num_targets: int = 1, *, of_sets: bool = False) -> Self:
        """Returns the ends before the first row."""
        ends = np.ones(1) if of_sets else np.array([-1.0, 1.0])
        shape = (num_targets, len(LEVELS))
        return cls(np.tile(ends, (*shape, 1)), np.zeros(shape))

    @property
    def of_sets(self) -> bool:
        """Whether these are factors of prediction sets."""
        return self.ends.shape[-1] == 1

    @property
    def factors(self) -> np.ndarray:
        """The factors of the lengths, or of prediction sets, [k, levels]."""
        if self.of_sets:
            return self.ends[..., 0]
        factors: np.ndarray = (self.ends[..., 1] - self.ends[..., 0]) / 2.0
        return factors

    def update(
        self, scores: np.ndarray, halves: np.ndarray | None = None
    ) -> "AdaptiveEnds":
        """Returns the ends after more rows, in their order."""
        ends, widest = self.ends, self.widest
        for row, score in enumerate(scores):
            if self.of_sets:
                ends = _move_factors(ends, score)
                continue
            half = np.zeros(score.shape) if halves is None else halves[row]
            unit = _unit(half, widest)
            ratio = np.divide(half, unit, out=np.ones_like(half), where=unit > 0.0)
            ends = _move_ends(ends, score, ratio)
            raised = np.clip(half, widest, widest * math.exp(STEP))
            widest = np.where(widest > 0.0, raised, half)
        return AdaptiveEnds(ends, widest, self.num_rows + len(scores))

    def at(self, levels: Sequence[float]) -> np.ndarray:
        """Returns the ends at some levels, [levels, k, 2 or 1].

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


@dataclass(frozen=True)
class AdaptiveIntervals:
    """The adapted ends of all rows, and of the rows of each group.

    A group starts from the ends of all rows when its first row comes, and moves by its
    own rows from then on. It is a function of the rows in their order, however they are
    split.

    Attributes:
        every: The ends of all rows.
        groups: The ends of the rows of each group, by its name.

    Example:

    >>> import numpy as np
    >>> errors = np.random.default_rng(0).normal(scale=2.0, size=1000)
    >>> scores = np.tile(errors[:, None, None] / 1.645, len(LEVELS))
    >>> adaptive = AdaptiveIntervals.start().update(scores)
    >>> lower, upper = adaptive.ends([0.9])[0, 0]
    >>> bool(1.5 < (upper - lower) / 2 < 2.5)
    True
    """

    every: AdaptiveEnds
    groups: Mapping[str, AdaptiveEnds] = field(default_factory=dict)

    @classmethod
    def start(cls, num_targets: int = 1, *, of_sets: bool = False) -> Self:
        """Returns the ends before the first row, which change nothing."""
        return cls(AdaptiveEnds.start(num_targets, of_sets=of_sets))

    def update(
        self,
        scores: np.ndarray,
        groups: Sequence[str | None] | None = None,
        halves: np.ndarray | None = None,
    ) -> "AdaptiveIntervals":
        """Returns the ends after more rows, in their order."""
        scores = np.asarray(scores, np.float64)
        wanted = self.every.ends.shape[:2]
        if scores.shape[1:] != wanted or np.isnan(scores).any():
            raise ValueError(
                f"`scores` must be numbers of the shape [n, {wanted[0]}, {wanted[1]}]. "
                f"Received: an array of shape {scores.shape}"
            )
        if groups is None:
            return AdaptiveIntervals(self.every.update(scores, halves), self.groups)
        every, found = self.every, dict(self.groups)
        for place, group in enumerate(groups):
            row = scores[place : place + 1]
            half = None if halves is None else halves[place : place + 1]
            if group is not None:
                before = found.get(group) or replace(every, num_rows=0)
                found[group] = before.update(row, half)
            every = every.update(row, half)
        return AdaptiveIntervals(every, found)

    def ends(self, levels: Sequence[float], group: str | None = None) -> np.ndarray:
        """Returns the ends of a group at some levels, [levels, k, 2 or 1].

        A group of which no row has come has the ends of all rows.
        """
        return self.of(group).at(levels)

    def widest(self, levels: Sequence[float], group: str | None = None) -> np.ndarray:
        """Returns the greatest half lengths of a group at some levels, [levels, k]."""
        return self.of(group).widest_at(levels)

    def of(self, group: str | None) -> AdaptiveEnds:
        """Returns the ends of a group; of all rows, if none of the group has come."""
        return self.groups.get(group, self.every) if group is not None else self.every

    def describe(self, group: str | None = None) -> Config:
        """Returns the rows and the factor of the length at each level, for answers.

        Of several targets it is the mean of their factors; of prediction sets, the
        factor of `-log(1 - level)`.
        """
        ends = self.of(group)
        factors = ends.factors.mean(axis=0)
        named = zip(LEVELS, factors.tolist(), strict=True)
        return {
            "num_rows": ends.num_rows,
            "factors": {f"{level:g}": round(factor, 6) for level, factor in named},
        }

    def to_dict(self) -> Config:
        """Returns the ends as plain JSON values."""
        return {
            "every": _to_dict(self.every),
            "groups": {name: _to_dict(ends) for name, ends in self.groups.items()},
        }

    @classmethod
    def from_dict(cls, values: Config) -> Self:
        """Creates the ends from the result of `to_dict`."""
        groups = {name: _from_dict(ends) for name, ends in values["groups"].items()}
        return cls(_from_dict(values["every"]), groups)


def interval_scores(
    targets: np.ndarray, lower: np.ndarray, upper: np.ndarray, *, discrete: bool
) -> np.ndarray:
    """Returns the scores of targets by their intervals, [n, k, levels]."""
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


def set_scores(held: np.ndarray) -> np.ndarray:
    """Returns scores of classes by the prediction sets that hold them, [n, 1, q]."""
    first = np.where(held.any(axis=1), held.argmax(axis=1), len(_LADDER) - 1)
    nominal = -np.log1p(-np.array(LEVELS))
    return (_LADDER[first][:, np.newaxis] / nominal)[:, np.newaxis]


def adapt_levels(levels: Sequence[float], ends: np.ndarray) -> list[float]:
    """Returns the levels of the adapted prediction sets."""
    tails = (1.0 - np.asarray(levels)) ** ends[:, 0, 0]
    adapted = np.minimum(1.0 - tails, 1.0 - _LEAST_TAIL)
    # The set of a level lies within that of each higher level.
    adapted[np.argsort(levels, kind="stable")] = np.sort(adapted)
    found: list[float] = adapted.tolist()
    return found


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


def _move_factors(ends: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Returns the factors of prediction sets after one row."""
    moved = ends[..., 0] * np.exp(STEP * ((score > ends[..., 0]) - _ALPHA))
    return np.clip(moved, 1.0 / LARGEST, LARGEST)[..., np.newaxis]


def _centre_and_half(
    lower: np.ndarray, upper: np.ndarray, discrete: bool
) -> tuple[np.ndarray, np.ndarray]:
    lower, upper = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
    return (lower + upper) / 2.0, (upper - lower) / 2.0 + (0.5 if discrete else 0.0)


def _to_dict(ends: AdaptiveEnds) -> Config:
    return {
        "ends": ends.ends.tolist(),
        "widest": ends.widest.tolist(),
        "num_rows": ends.num_rows,
    }


def _from_dict(values: Config) -> AdaptiveEnds:
    ends = np.array(values["ends"])
    # States of earlier releases lack it.
    widest = np.array(values.get("widest", np.zeros(ends.shape[:2])))
    return AdaptiveEnds(ends, widest, values["num_rows"])
