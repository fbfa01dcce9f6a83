"""Scores of predictive distributions, computed alike for every method."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr

_LEVELS = (50, 90, 95)
# The score of a number or class of (almost) no probability.
_LEAST_PROBABILITY = 1e-12
_ROWS_AT_ONCE = 1000
_HALVINGS = 60


@dataclass(frozen=True)
class MixtureOfNormals:
    """Predictive distributions, each a uniform mixture of normals.

    Attributes:
        means: Means of the components, [K, rows].
        stddevs: Their standard deviations, [K, rows].
    """

    means: np.ndarray
    stddevs: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Means [rows]."""
        return self.means.mean(axis=0)

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """Returns log densities [rows] of y in nats."""
        z = (y - self.means) / self.stddevs
        logs = -0.5 * z**2 - np.log(self.stddevs) - 0.5 * math.log(2.0 * math.pi)
        return logsumexp(logs, axis=0) - math.log(len(logs))

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """Returns the probabilities [rows] of at most y."""
        return ndtr((y - self.means) / self.stddevs).mean(axis=0)

    def quantile(self, level: float) -> np.ndarray:
        """Returns quantiles [rows], by bisection."""
        reach = 40.0 * self.stddevs
        low, high = (self.means - reach).min(axis=0), (self.means + reach).max(axis=0)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            below = self.cdf(middle) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return (low + high) / 2

    def log_probability(self, y: np.ndarray) -> np.ndarray:
        """Returns log probabilities [rows] of the whole number y, of y ± 0.5."""
        upper = (y + 0.5 - self.means) / self.stddevs
        lower = (y - 0.5 - self.means) / self.stddevs
        # In the upper tail the difference of two ones would lose its digits.
        flipped = lower > 0.0
        a = np.where(flipped, -upper, lower)
        b = np.where(flipped, -lower, upper)
        logs = log_ndtr(b) + np.log1p(-np.exp(np.minimum(log_ndtr(a) - log_ndtr(b), 0)))
        total = logsumexp(logs, axis=0) - math.log(len(logs))
        return np.maximum(total, math.log(_LEAST_PROBABILITY))

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Returns the continuous ranked probability scores [rows] of y.

        With A(m, v) = E|z| of z ~ N(m, v), the score is
        mean_k A(y - m_k, v_k) - mean_jk A(m_j - m_k, v_j + v_k) / 2 (Grimit et al.
        2006).
        """
        spread = np.zeros(len(y))
        for first in range(0, len(y), _ROWS_AT_ONCE):
            rows = slice(first, first + _ROWS_AT_ONCE)
            means, variances = self.means[:, rows], self.stddevs[:, rows] ** 2
            for mean, variance in zip(means, variances, strict=True):
                gaps = _mean_absolute(means - mean, variances + variance)
                spread[rows] += gaps.mean(axis=0) / len(means)
        return _mean_absolute(y - self.means, self.stddevs**2).mean(axis=0) - spread / 2


def _mean_absolute(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Returns E|z| of z ~ N(mean, variance)."""
    stddev = np.sqrt(variance)
    z = mean / stddev
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    return mean * (2.0 * ndtr(z) - 1.0) + 2.0 * stddev * density


def interval_score(
    lower: np.ndarray, upper: np.ndarray, y: np.ndarray, coverage: float
) -> np.ndarray:
    """Returns the interval scores of y; smaller ones are better.

    The score is the width, and 2 / (1 - coverage) times the distance of a target
    outside (Gneiting and Raftery 2007, equation 43).
    """
    outside = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    return upper - lower + 2.0 / (1.0 - coverage) * outside


def _interval_scores(
    intervals: Mapping[int, tuple[np.ndarray, np.ndarray]], y: np.ndarray
) -> dict[str, float]:
    """Returns the coverage of intervals by per cent, and the interval score of 90 %."""
    scores = {
        f"coverage_{percent}": float(np.mean((lower <= y) & (y <= upper)))
        for percent, (lower, upper) in intervals.items()
    }
    score = interval_score(*intervals[90], y, 0.9)
    return {**scores, "interval_score_90": float(score.mean())}


def distribution_scores(
    distribution: MixtureOfNormals,
    y: np.ndarray,
    *,
    whole_numbers: bool,
    interval: np.ndarray | None = None,
) -> dict[str, float]:
    """Returns the scores of predictive distributions, with a given interval of 90 %."""
    scores = {
        "rmse": float(np.sqrt(np.mean((distribution.mean - y) ** 2))),
        "crps": float(distribution.crps(y).mean()),
        "log_likelihood": float(distribution.log_prob(y).mean()),
    }
    intervals = {
        percent: (
            distribution.quantile(0.5 - percent / 200),
            distribution.quantile(0.5 + percent / 200),
        )
        for percent in _LEVELS
    }
    if interval is not None:
        intervals[90] = (interval[0], interval[1])
    scores |= _interval_scores(intervals, y)
    if whole_numbers:
        scores["log_probability"] = float(distribution.log_probability(y).mean())
    return scores


def prediction_scores(
    prediction: Any, y: np.ndarray, *, whole_numbers: bool
) -> dict[str, float]:
    """Returns the same scores of a `tfbbb.Predictive`, by its own answers."""
    from tfbbb import metrics

    targets = np.asarray(y, float)[:, np.newaxis]
    log_likelihood = float(np.mean(prediction.log_prob(targets)))
    errors = np.asarray(prediction.mean, float).reshape(targets.shape) - targets
    intervals = {}
    for percent in _LEVELS:
        lower, upper = prediction.interval(percent / 100)
        intervals[percent] = np.ravel(lower), np.ravel(upper)
    scores = {
        "rmse": float(np.sqrt(np.mean(errors**2))),
        "log_likelihood": log_likelihood,
        "crps": float(metrics.crps(prediction, targets)),
        **_interval_scores(intervals, targets[:, 0]),
    }
    if whole_numbers and prediction.discrete:
        scores["log_probability"] = log_likelihood
    elif whole_numbers:
        above, below = prediction.cdf(targets + 0.5), prediction.cdf(targets - 0.5)
        probability = np.asarray(above, float) - np.asarray(below, float)
        logs = np.log(np.maximum(probability, _LEAST_PROBABILITY))
        scores["log_probability"] = float(logs.mean())
    return scores


def class_scores(
    probabilities: np.ndarray, classes: np.ndarray, labels: np.ndarray
) -> dict[str, float]:
    """Returns the scores of probabilities [rows, classes] of labels [rows].

    A label that no training row had has no probability.
    """
    unseen = np.setdiff1d(labels, classes)
    zeros = np.zeros((len(labels), len(unseen)))
    every = np.concatenate([classes, unseen]).tolist()
    codes = np.array([every.index(label) for label in labels.tolist()])
    of_all = np.column_stack([probabilities, zeros])
    given = np.maximum(of_all[np.arange(len(codes)), codes], _LEAST_PROBABILITY)
    return {
        "log_likelihood": float(np.log(given).mean()),
        "accuracy": float(np.mean(of_all.argmax(axis=1) == codes)),
    }
