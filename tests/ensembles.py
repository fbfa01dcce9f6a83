"""Models of several members, small, and their gradients."""

import keras
import numpy as np

import tfbbb
from tfbbb.layers import DenseVariational

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(40, 3)).astype("float32")
Y = (X @ [[1.0], [2.0], [3.0]] + 1.0).astype("float32")
ALMOST_A_POINT = tfbbb.posteriors.MeanFieldNormal(initial_scale=1e-6)


def network(members, estimator="auto", posterior=ALMOST_A_POINT, likelihood="normal"):
    """Returns a compiled model of a hidden layer; its members differ."""
    keras.utils.set_random_seed(1)
    options = {
        "estimator": estimator,
        "posterior": posterior,
        "bias_posterior": posterior,
        "bias_initializer": "normal",
    }
    inputs = keras.Input((3,))
    hidden = DenseVariational(6, activation="tanh", **options)(inputs)
    outputs = DenseVariational(1, **options)(hidden)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood, members=members)
    model.compile(keras.optimizers.SGD(0.05))
    model.likelihood.adapt(Y)
    for layer in model.variational_layers:
        layer.kl_weight.assign(1.0 / len(X))
    return model
