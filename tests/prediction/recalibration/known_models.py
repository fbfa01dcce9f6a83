"""Models whose predictions are known, and targets drawn from what they should be."""

import functools
from dataclasses import dataclass

import keras
import numpy as np
from keras.initializers import GlorotUniform
from scipy import stats

import tfbbb
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import DenseVariational

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(2000, 3)).astype("float32")
FRESH = GENERATOR.normal(size=(2000, 3)).astype("float32")
# Draws of a prediction, few of which serve as well here.
DRAWS = 20
# Of the means of the two kernels.
SEEDS = 413654000, 955892129


@dataclass
class Known:
    """The prediction of n rows that have one distribution."""

    distribution: stats.rv_continuous
    rows: int
    discrete: bool = False

    def cdf(self, values):
        return self.distribution.cdf(values)

    def quantile(self, levels):
        ends = self.distribution.ppf(levels)
        if ends.ndim == 1:
            ends = ends[np.newaxis, :, np.newaxis]
        return np.tile(ends, (self.rows // len(ends), 1, 1))

    def take(self, rows):
        return Known(self.distribution, len(rows), self.discrete)


def network(units=1, likelihood="normal", spread=0.3, members=None):
    """Returns a model of one hidden layer whose weights vary by about `spread`."""
    posterior = MeanFieldNormal(initial_scale=spread)
    both = {"posterior": posterior, "bias_posterior": posterior}
    inputs = keras.Input((3,))
    first, last = (GlorotUniform(seed) for seed in SEEDS)
    hidden = DenseVariational(6, "tanh", kernel_initializer=first, **both)(inputs)
    outputs = DenseVariational(units, kernel_initializer=last, **both)(hidden)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood, members=members)


@functools.cache
def _shared_network(*arguments):
    return network(*arguments)


def shared_network(*arguments):
    """Returns the same for tests that train and adapt nothing, compiled once."""
    model = _shared_network(*arguments)
    model.recalibration = None
    return model


def drawn(model, x, seed=0):
    """Returns targets that the model's predictions are calibrated for."""
    prediction = model.predictive(x, num_samples=DRAWS)
    return prediction.sample(1, seed=seed)[0]


def spread_out(model, x, factor, seed=0):
    """Returns targets drawn from predictions, moved away from their mean."""
    mean = model.predictive(x, num_samples=DRAWS).mean
    return mean + np.asarray(factor) * (drawn(model, x, seed) - mean)
