import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.inference.linear_regression import linear_model, posterior, rows
from tfbbb.inference import MAP, DeepEnsemble, MaximumLikelihood, MCDropout
from tfbbb.inference.network_function import NetworkFunction

SCALE = 0.05
X, Y = rows(40, [1.0, -2.0, 0.5])
DESIGN = np.c_[X, np.ones(40)].astype(float)
# Each pass reads all rows 50 times, in full batches. A repeated row counts once.
COPIES = 50
FULL_BATCHES = {"epochs": 10, "learning_rate": 0.1}


def copies():
    return tf.data.Dataset.from_tensors((X, Y)).repeat(COPIES)


@pytest.fixture(scope="module")
def linear():
    return linear_model(3, SCALE)


def test_maximum_likelihood_is_least_squares(linear):
    model = MaximumLikelihood(**FULL_BATCHES).fit(linear, copies(), verbose=0)
    expected = np.linalg.lstsq(DESIGN, Y, rcond=None)[0]
    np.testing.assert_allclose(NetworkFunction(model).means()[0], expected, atol=1e-4)
    assert model.variational_layers[0].prior is None
    assert model.diagnostics["loss"] == pytest.approx(model.diagnostics["nll"])


def test_maximum_a_posteriori_is_ridge_regression(linear):
    model = MAP(**FULL_BATCHES).fit(linear, copies(), verbose=0)
    expected, _ = posterior(X, Y, SCALE)
    np.testing.assert_allclose(NetworkFunction(model).means()[0], expected, atol=1e-4)
    # Far from least squares, so that the test can tell them apart.
    plain = np.linalg.lstsq(DESIGN, Y, rcond=None)[0]
    assert np.abs(expected - plain).max() > 0.05


def test_members_of_an_ensemble_start_apart():
    network = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(6, "tanh"), keras.layers.Dense(1)]
    )
    method = DeepEnsemble(members=4, prior=False, epochs=3)
    model = method.fit(network, X, Y, likelihood="normal", verbose=0)
    means = NetworkFunction(model).means()
    assert len(means) == 4
    distances = np.linalg.norm(means[:, None] - means, axis=-1)
    assert distances[~np.eye(4, dtype=bool)].min() > 1.0
    assert model.likelihood.raw_noise.shape == (4, 1)
    assert (model.predictive(X).epistemic > 0.0).all()
    assert model.inference.method.startswith("DeepEnsemble(")


def test_dropout_spreads_predictions_that_ask_for_it():
    network = keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(6, "tanh"),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(1),
        ]
    )
    model = MCDropout(epochs=3).fit(network, X, Y, likelihood="normal", verbose=0)
    assert (model.predictive(X, include_dropout=True).epistemic > 0.0).all()
    np.testing.assert_allclose(model.predictive(X).epistemic, 0.0, atol=1e-5)


def test_a_keras_model_needs_a_likelihood():
    network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    with pytest.raises(ValueError, match="needs the likelihood"):
        MAP().fit(network, X, Y)
