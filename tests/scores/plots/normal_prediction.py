"""A predictive distribution in closed form, with the interface of `Predictive`."""

from dataclasses import dataclass

import numpy as np
from scipy import stats


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
