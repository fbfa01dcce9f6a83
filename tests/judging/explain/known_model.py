"""A model whose predictions have closed forms: a line with an uncertain slope."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

SLOPE, DEVIATION, NOISE = 2.0, 0.1, 0.5


@dataclass
class Line:
    """y = w x + noise, w ~ N(2, 0.1^2); other columns have no effect."""

    asked: int = 0

    def predictive(self, x, num_samples=100, seed=0):
        self.asked += 1
        return Prediction(np.asarray(x["x"], np.float64)[:, np.newaxis])


@dataclass
class Prediction:
    x: np.ndarray

    def __len__(self):
        return len(self.x)

    @property
    def mean(self):
        return SLOPE * self.x

    @property
    def epistemic(self):
        return (DEVIATION * self.x) ** 2

    @property
    def aleatoric(self):
        return np.full_like(self.x, NOISE**2)

    @property
    def stddev(self):
        return np.sqrt(self.epistemic + self.aleatoric)

    @property
    def between_members(self):
        return np.zeros_like(self.x)

    def log_prob(self, y):
        return norm.logpdf(y, self.mean, self.stddev)[:, 0]

    def joint_sample(self, n, seed=0):
        slopes = np.random.default_rng(seed).normal(SLOPE, DEVIATION, n)
        return slopes[:, np.newaxis, np.newaxis] * self.x


class Classes:
    """Two classes; p(second) = 0.9 where x > 0, else 0.2."""

    def predictive(self, x, num_samples=100, seed=0):
        return ClassPrediction(np.where(np.asarray(x)[:, 0] > 0, 0.9, 0.2))


@dataclass
class ClassPrediction:
    second: np.ndarray

    def __len__(self):
        return len(self.second)

    @property
    def probabilities(self):
        return np.stack([1.0 - self.second, self.second], axis=1)

    mean = probabilities

    @property
    def entropy(self):
        return -np.sum(self.mean * np.log(self.mean), axis=1)

    @property
    def mutual_information(self):
        return 0.1 * self.entropy

    def log_prob(self, y):
        return np.log(self.mean[np.arange(len(self)), y])

    def joint_sample(self, n, seed=0):
        return np.repeat(self.mean[np.newaxis], n, axis=0)
