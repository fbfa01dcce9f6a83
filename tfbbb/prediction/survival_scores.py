"""Scores of times that may be cut off: targets [n, 2] of a time and an event."""

import numpy as np

from tfbbb.base.types import ArrayLike
from tfbbb.prediction.result import Predictive

# Pairs of rows that are compared at a time, and the most rows of which all are.
_ROWS_AT_A_TIME, _MOST_ROWS = 500, 5000
_NUM_TIMES = 24
# Beyond the time that fewer rows than this share are observed to, few weights are huge.
_LEAST_OBSERVED = 0.1


def kaplan_meier(
    times: np.ndarray, happened: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the times of events, in order, and the share that outlives each.

    The product-limit estimate of Kaplan and Meier (1958).
    """
    weights = np.ones(len(times)) if weights is None else weights
    known, places = np.unique(times, return_inverse=True)
    events = np.bincount(places, weights * happened)
    at_risk = np.cumsum(np.bincount(places, weights)[::-1])[::-1]
    survival = np.cumprod(1.0 - events / at_risk)
    return known[events > 0.0], survival[events > 0.0]


def step(curve: tuple[np.ndarray, np.ndarray], times: ArrayLike) -> np.ndarray:
    """Returns the share of a curve of `kaplan_meier` that outlives given times."""
    known, survival = curve
    return np.concatenate([[1.0], survival])[np.searchsorted(known, times, "right")]


def scored_times(targets: np.ndarray) -> np.ndarray:
    """Returns the times at which `brier_of_rows` scores, quantiles of the events.

    They end where a tenth of the rows is still observed.
    """
    times, happened = targets[:, 0], targets[:, 1] == 1.0
    events = np.sort(times[happened])
    last = np.quantile(times, 1.0 - _LEAST_OBSERVED)
    events = events[events <= last] if (events <= last).any() else events[:1]
    return np.unique(np.quantile(events, np.linspace(0.0, 1.0, _NUM_TIMES)))


def brier_of_rows(survival: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Returns the integrated Brier score of each row, [n].

    `survival` [n, T] is P(y > t) at the `scored_times`. At a time t a row counts if it
    is known whether it outlives t, by the inverse of the probability to know it (Graf
    et al. 1999): that of not being cut off before its event, or before t.
    """
    times, happened = targets[:, :1], targets[:, 1:] == 1.0
    at = scored_times(targets)
    # A row that has its event when another is cut off was observed before that.
    known = kaplan_meier(times[:, 0], ~happened[:, 0])
    before = np.nextafter(times[:, 0], 0.0)
    of_event = 1.0 / np.maximum(step(known, before), 1e-3)[:, np.newaxis]
    of_time = 1.0 / np.maximum(step(known, at), 1e-3)
    over = times <= at
    scores = np.where(over & happened, np.square(survival) * of_event, 0.0)
    scores += np.where(~over, np.square(1.0 - survival) * of_time, 0.0)
    if len(at) == 1:
        return scores[:, 0]
    return np.trapezoid(scores, at, axis=1) / (at[-1] - at[0])


def held_in_intervals(
    up_to: np.ndarray, happened: np.ndarray, level: float
) -> np.ndarray:
    """Returns whether intervals of a level hold times, by P(Y <= time).

    Of a row that was cut off it is the probability of an interval beyond then: so the
    mean of calibrated rows is the level (Haider et al. 2020).
    """
    low, high = 0.5 - level / 2.0, 0.5 + level / 2.0
    inside = (low <= up_to) & (up_to <= high)
    beyond = np.maximum(high - np.maximum(up_to, low), 0.0)
    return np.where(happened, inside, beyond / np.maximum(1.0 - up_to, 1e-300))


def concordance_of_times(predicted: np.ndarray, targets: np.ndarray) -> float | None:
    """Returns the share of comparable pairs that `predicted` times [n] order rightly.

    A pair is comparable if the shorter time ended by the event (Harrell et al. 1982);
    equal predictions count half. None without such a pair. Of many rows it is that of
    5000.
    """
    chosen = np.arange(len(targets))
    if len(chosen) > _MOST_ROWS:
        generator = np.random.default_rng(0)
        chosen = generator.choice(len(chosen), _MOST_ROWS, replace=False)
    times, happened = targets[chosen, 0], targets[chosen, 1] == 1.0
    predicted = predicted[chosen]
    right = total = 0.0
    for first in range(0, len(times), _ROWS_AT_A_TIME):
        rows = slice(first, first + _ROWS_AT_A_TIME)
        own = times[rows, np.newaxis]
        longer = (own < times) | ((own == times) & ~happened)
        comparable = longer & happened[rows, np.newaxis]
        difference = predicted - predicted[rows, np.newaxis]
        right += np.sum(comparable * (0.5 + 0.5 * np.sign(difference)))
        total += np.sum(comparable)
    return float(right / total) if total else None


def concordance(prediction: Predictive, y: ArrayLike) -> float | None:
    """Returns the share of pairs of rows whose means are in the order of their times.

    1/2 is chance; a pair counts if the shorter time ended by the event. None without
    such a pair.

    Args:
        prediction: A prediction by a likelihood with `censored=True`.
        y: Times and events, [rows, 2].
    """
    return concordance_of_times(prediction.mean[:, 0], np.asarray(y, np.float64))


def integrated_brier_score(
    prediction: Predictive, y: ArrayLike, *, per_row: bool = False
) -> float | np.ndarray:
    """Returns the Brier score of P(y > t), averaged over times; less is better.

    Rows that were cut off count by the inverse of the probability to know them, from
    Kaplan and Meier's estimate of when rows are cut off (Graf et al. 1999). The times
    go from the first event to where a tenth of the rows is still observed.

    Args:
        prediction: A prediction by a likelihood with `censored=True`.
        y: Times and events, [rows, 2].
        per_row: Whether to return the score of each row, [rows].
    """
    targets = np.asarray(y, np.float64)
    survival = prediction.survival(scored_times(targets).tolist())[..., 0]
    scores = brier_of_rows(survival, targets)
    return scores if per_row else float(scores.mean())
