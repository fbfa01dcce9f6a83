"""Predictive distributions in closed form, with the interface of `Predictive`."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from tests.scores.metrics.known_predictions import Classes


@dataclass(frozen=True)
class NormalPrediction:
    """y is normal, and so is its mean: arrays [rows, k]."""

    mean: np.ndarray
    epistemic: np.ndarray
    aleatoric: np.ndarray

    @property
    def variance(self):
        return self.epistemic + self.aleatoric

    @property
    def stddev(self):
        return np.sqrt(self.variance)

    def cdf(self, y):
        return stats.norm.cdf(y, self.mean, self.stddev)

    def quantile(self, p):
        levels = np.reshape(p, (-1, 1))
        mean, stddev = self.mean[:, np.newaxis], self.stddev[:, np.newaxis]
        quantiles = stats.norm.ppf(levels, mean, stddev)
        return quantiles[:, 0] if np.ndim(p) == 0 else quantiles

    def interval(self, level=0.9):
        bounds = self.quantile([0.5 - level / 2, 0.5 + level / 2])
        return bounds[:, 0], bounds[:, 1]


class UniformPrediction:
    """Each of n numbers is uniform from 0 to 1: it is its own integral transform."""

    aleatoric = 1.0 / 12.0

    def __init__(self, rows):
        self.mean = np.full((rows, 1), 0.5)

    def cdf(self, y):
        return np.asarray(y)


def measured(counts, confidences, right):
    """Returns a prediction of three classes, and the true ones.

    In each of some groups of rows, the first class has one probability, and is right so
    many times.
    """
    sure = np.repeat(confidences, counts)
    probabilities = np.stack([sure, (1.0 - sure) / 2, (1.0 - sure) / 2], axis=1)
    ranks = np.concatenate([np.arange(count) for count in counts])
    return Classes(probabilities[np.newaxis]), (
        ranks >= np.repeat(right, counts)
    ).astype(int)
