"""The loss written out: divergence, temperature, members, and maximum a posteriori."""

import keras
import numpy as np
import pytest

import tfbbb
from tests.keras_programs.twins import (
    POINT,
    assert_same_weights,
    copy_weights,
    squared_error,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3)).astype("float32")
Y = X[:, :1] - 0.3 * RANDOM.normal(size=(40, 1)).astype("float32")


def bayesian(
    units=1, likelihood=None, members=None, rate=0.0, kl_schedule="constant", **options
):
    inputs = keras.Input((3,))
    outputs = tfbbb.layers.DenseVariational(units, **options)(inputs)
    likelihood = likelihood or squared_error()
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood, members=members)
    model.compile(keras.optimizers.SGD(rate), kl_schedule=kl_schedule, run_eagerly=True)
    return model


@pytest.mark.parametrize(
    ("prior", "penalty"),
    [
        (tfbbb.priors.Normal(scale=0.5), keras.regularizers.L2(1 / (2 * 0.25 * 40))),
        (tfbbb.priors.Laplace(scale=0.5), keras.regularizers.L1(1 / (0.5 * 40))),
    ],
    ids=["normal is L2", "laplace is L1"],
)
def test_maximum_a_posteriori_is_a_penalty(prior, penalty):
    model = bayesian(rate=0.1, **POINT | {"prior": prior})
    twin = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(1, kernel_regularizer=penalty)]
    )
    copy_weights(model, twin)
    twin.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=True)
    for each in (model, twin):
        each.fit(X, Y, batch_size=20, epochs=2, shuffle=False, verbose=0)
    assert_same_weights(model, twin)
