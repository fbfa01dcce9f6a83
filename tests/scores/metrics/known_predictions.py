"""Predictions of known distributions, with the public names of `tfbbb.Predictive`."""

import numpy as np
from scipy import special, stats


class Mixture:
    """A uniform mixture of SciPy's distributions, one per draw.

    Args:
        components: A frozen distribution of shape [S, rows, k].
        discrete: Whether it is of counts.
    """

    def __init__(self, components, discrete=False):
        self.components = components
        self.discrete = discrete

    @property
    def mean(self):
        return self.components.mean().mean(axis=0)

    @property
    def epistemic(self):
        return self.components.mean().var(axis=0, ddof=1)

    @property
    def aleatoric(self):
        return self.components.var().mean(axis=0)

    @property
    def variance(self):
        return self.epistemic + self.aleatoric

    @property
    def stddev(self):
        return np.sqrt(self.variance)

    def cdf(self, y):
        return self.components.cdf(np.asarray(y)).mean(axis=0)

    def log_prob(self, y):
        log = self.components.logpmf if self.discrete else self.components.logpdf
        joint = log(np.asarray(y)).sum(axis=-1)
        return special.logsumexp(joint, axis=0) - np.log(len(joint))

    def quantile(self, p):
        return np.stack([self._quantile(level) for level in np.atleast_1d(p)], axis=1)

    def _quantile(self, level):
        ends = self.components.ppf(level)
        low, high = ends.min(axis=0) - 1.0, ends.max(axis=0) + 1.0
        while not np.all(high - low < 1e-10 * (1.0 + np.abs(high))):
            middle = 0.5 * (low + high)
            reached = self.cdf(middle) >= level
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return np.floor(high) if self.discrete else high


class Classes:
    """Probabilities of classes under each draw, [S, rows, C]."""

    def __init__(self, probabilities):
        self.of_draws = np.asarray(probabilities, dtype=np.float64)

    @property
    def probabilities(self):
        return self.of_draws.mean(axis=0)

    mean = probabilities

    @property
    def entropy(self):
        return stats.entropy(self.probabilities, axis=-1)

    @property
    def mutual_information(self):
        return self.entropy - stats.entropy(self.of_draws, axis=-1).mean(axis=0)

    @property
    def epistemic(self):
        return self.of_draws.var(axis=0, ddof=1)

    @property
    def aleatoric(self):
        return (self.of_draws * (1.0 - self.of_draws)).mean(axis=0)

    @property
    def variance(self):
        return self.epistemic + self.aleatoric

    def log_prob(self, y):
        return np.log(np.take_along_axis(self.probabilities, y[:, None], 1)[:, 0])

    def cdf(self, y):
        raise ValueError("Classes have no order.")

    def quantile(self, p):
        raise ValueError("Classes have no order and hence no quantiles.")


def normals(rows=50, draws=7, targets=1, seed=0):
    """Returns a mixture of normals of random means and standard deviations."""
    generator = np.random.default_rng(seed)
    shape = (draws, rows, targets)
    scales = np.exp(generator.normal(0.0, 0.4, size=shape))
    return Mixture(stats.norm(generator.normal(3.0, 1.0, size=shape), scales))


def classes(rows=50, num_classes=4, draws=5, seed=0):
    """Returns random probabilities of classes."""
    logits = np.random.default_rng(seed).normal(size=(draws, rows, num_classes))
    return Classes(special.softmax(1.5 * logits, axis=-1))


def labels(prediction, seed=1):
    """Returns classes drawn from a prediction, which is calibrated for them."""
    spread = np.random.default_rng(seed).uniform(size=(len(prediction.mean), 1))
    return (prediction.probabilities.cumsum(axis=-1)[:, :-1] < spread).sum(axis=1)


def values(prediction, seed=1):
    """Returns targets drawn from a prediction, which is calibrated for them."""
    generator = np.random.default_rng(seed)
    shape = prediction.components.mean().shape
    drawn = prediction.components.rvs(shape, random_state=generator)
    chosen = generator.integers(len(drawn), size=(1, drawn.shape[1], 1))
    return np.take_along_axis(drawn, chosen, axis=0)[0]
