"""Scores of predictive distributions, computed alike for every method."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr

_LEVELS = (50, 90, 95)
# The score of a number or class of (almost) no probability.
_LEAST_PROBABILITY = 1e-12
_ROWS_AT_ONCE = 1000
_BINS = 15


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


def mixture_scores(
    mixture: MixtureOfNormals, y: np.ndarray, *, whole_numbers: bool
) -> dict[str, float]:
    """Returns the scores of a mixture of normals.

    Args:
        mixture: Predictive distributions of the rows.
        y: Targets [rows].
        whole_numbers: Whether all targets of the table are whole numbers; then also
            scores the probability of the number.
    """
    below = mixture.cdf(y)
    scores = {
        "rmse": float(np.sqrt(np.mean((mixture.mean - y) ** 2))),
        "log_likelihood": float(mixture.log_prob(y).mean()),
        "crps": float(mixture.crps(y).mean()),
    }
    for percent in _LEVELS:
        inside = np.abs(below - 0.5) <= percent / 200
        scores[f"coverage_{percent}"] = float(inside.mean())
    if whole_numbers:
        scores["log_probability"] = float(mixture.log_probability(y).mean())
    return scores


def prediction_scores(
    prediction: Any, y: np.ndarray, *, whole_numbers: bool
) -> dict[str, float]:
    """Returns the same scores of a `tfbbb.Predictive`, by its own answers."""
    from tfbbb import metrics

    targets = np.asarray(y, float)[:, np.newaxis]
    log_likelihood = float(np.mean(prediction.log_prob(targets)))
    errors = np.asarray(prediction.mean, float).reshape(targets.shape) - targets
    scores = {
        "rmse": float(np.sqrt(np.mean(errors**2))),
        "log_likelihood": log_likelihood,
        "crps": float(metrics.crps(prediction, targets)),
    }
    for percent in _LEVELS:
        lower, upper = (
            np.reshape(bound, targets.shape)
            for bound in prediction.interval(percent / 100)
        )
        inside = (lower <= targets) & (targets <= upper)
        scores[f"coverage_{percent}"] = float(inside.mean())
    if whole_numbers and prediction.discrete:
        scores["log_probability"] = log_likelihood
    elif whole_numbers:
        above, below = prediction.cdf(targets + 0.5), prediction.cdf(targets - 0.5)
        probability = np.asarray(above, float) - np.asarray(below, float)
        logs = np.log(np.maximum(probability, _LEAST_PROBABILITY))
        scores["log_probability"] = float(logs.mean())
    return scores


def class_scores(probabilities: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Returns the scores of probabilities of classes.

    Args:
        probabilities: Probabilities [rows, 2].
        y: Classes 0 and 1 [rows].

    Returns:
        `log_likelihood` in nats per row, `accuracy`, `brier_score` of the second class,
        and `expected_calibration_error`, the mean over rows of |accuracy - confidence|
        of the row's bin, one of 15 of equal width (Guo et al. 2017).
    """
    given = probabilities[np.arange(len(y)), y]
    confidence = probabilities.max(axis=1)
    correct = probabilities.argmax(axis=1) == y
    bins = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    gaps = np.bincount(bins, weights=correct - confidence, minlength=_BINS)
    return {
        "log_likelihood": float(np.log(np.maximum(given, _LEAST_PROBABILITY)).mean()),
        "accuracy": float(correct.mean()),
        "brier_score": float(np.mean((probabilities[:, 1] - y) ** 2)),
        "expected_calibration_error": float(np.abs(gaps).sum() / len(y)),
    }
