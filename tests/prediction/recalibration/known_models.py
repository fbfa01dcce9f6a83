"""Models whose predictions are known, and targets drawn from what they should be."""

from dataclasses import dataclass

import keras
import numpy as np
from keras.initializers import GlorotUniform
from scipy import stats

import tfbbb
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import DenseVariational
from tfbbb.prediction.answers import Answers
from tfbbb.prediction.recalibration.from_outputs import apply
from tfbbb.prediction.recalibration.recalibration import IDENTITY
from tfbbb.prediction.result import Predictive

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


class DrawnModel:
    """Draws of the weights of one hidden layer, whose outputs are arrays.

    It is a `LikelihoodModel`, and predicts and recalibrates as a `BayesianModel` does.
    The weights vary by a third of `spread`: the last layer of a network adds as much.
    """

    familiarity = extrapolation = input = num_rows = None
    variables = inputs = variational_layers = ()

    def __init__(self, units=1, likelihood="normal", spread=0.3, members=None):
        self.likelihood = tfbbb.likelihoods.get(likelihood)
        if not self.likelihood.built:
            self.likelihood.build((None, units))
        self.members = members or 1
        self._recalibration = None
        generator = np.random.default_rng(1)
        self._layers = []
        # The draws are by round, by sign, by member.
        for shape, scale in (((4, 6), 0.47), ((7, units), 0.53)):
            mean = scale * generator.normal(size=(1, 1, self.members, *shape))
            mean[..., -1, :] = 0.0
            noise = generator.normal(size=(DRAWS // 2, 1, self.members, *shape))
            both = mean + spread / 3.0 * np.concatenate([noise, -noise], axis=1)
            self._layers.append(both.reshape(-1, *shape))

    @property
    def recalibration(self):
        return self._recalibration

    @recalibration.setter
    def recalibration(self, value):
        if value is not None:
            value.check(self.likelihood)
        self._recalibration = value

    def outputs(self, x):
        """Returns the outputs of rows, [rows, S, units]."""
        first, last = self._layers
        hidden = np.tanh(x @ first[:, :-1] + first[:, -1:])
        return np.moveaxis(hidden @ last[:, :-1] + last[:, -1:], 0, 1)

    def predictive(self, x, num_samples=DRAWS, method="weight", seed=0):
        outputs = self.outputs(x)
        prediction = Predictive(
            Answers(self.likelihood, IDENTITY, self.members),
            lambda: iter([outputs]),
            outputs.shape[1],
            seed,
            lambda n, seed: None,
        )
        if self.recalibration is None:
            return prediction
        groups = self.recalibration.groups(x)
        return apply(self.recalibration, self.likelihood, prediction, groups)

    def recalibrate(self, *rows, **options):
        return tfbbb.recalibrate(self, *rows, **options)


def network(units=1, likelihood="normal", spread=0.3, members=None):
    """Returns a Keras model of one hidden layer."""
    posterior = MeanFieldNormal(initial_scale=spread)
    both = {"posterior": posterior, "bias_posterior": posterior, "estimator": "weight"}
    inputs = keras.Input((3,))
    first, last = (GlorotUniform(seed) for seed in SEEDS)
    hidden = DenseVariational(6, "tanh", kernel_initializer=first, **both)(inputs)
    outputs = DenseVariational(units, kernel_initializer=last, **both)(hidden)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood, members=members)


def drawn(model, x, seed=0):
    """Returns targets that the model's predictions are calibrated for."""
    prediction = model.predictive(x, num_samples=DRAWS)
    return prediction.sample(1, seed=seed)[0]


def spread_out(model, x, factor, seed=0):
    """Returns targets drawn from predictions, moved away from their mean."""
    mean = model.predictive(x, num_samples=DRAWS).mean
    return mean + np.asarray(factor) * (drawn(model, x, seed) - mean)
