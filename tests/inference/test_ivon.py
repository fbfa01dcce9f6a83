import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.inference import IVON
from tfbbb.inference.network_function import NetworkFunction

NOISE, SCALE = 0.5, 0.4
RANDOM = np.random.default_rng(0)
# Inputs of scales over two decades, so that no common variance would do.
X = (RANDOM.normal(size=(400, 3)) * [0.1, 1.0, 5.0]).astype("float32")
Y = (X @ [1.0, -1.0, 0.2] + 0.3 + NOISE * RANDOM.normal(size=400)).astype("float32")


@pytest.fixture(scope="module")
def fitted():
    inputs = keras.Input((3,))
    prior = tfbbb.priors.Normal(scale=SCALE)
    layer = tfbbb.layers.DenseVariational(1, prior=prior, bias_prior=prior)
    likelihood = tfbbb.likelihoods.Normal(scale=NOISE, standardize=False)
    model = tfbbb.BayesianModel(inputs, layer(inputs), likelihood=likelihood)
    method = IVON(epochs=100, batch_size=40, initial_hessian=10.0)
    keras.utils.set_random_seed(0)
    return method.fit(model, X, Y, verbose=0)


def test_variances_are_those_of_the_best_factorised_normal(fitted):
    design = np.c_[X, np.ones(400)].astype(float)
    precision = design.T @ design / NOISE**2 + np.eye(4) / SCALE**2
    weights = NetworkFunction(fitted).weights
    scale = np.concatenate([w.stddev.numpy().ravel() for w in weights])
    expected = 1.0 / np.sqrt(np.diag(precision))
    assert expected.max() / expected.min() > 10.0
    # The curvature averages 100 estimates, noisier than squares of normals: the
    # gradient of a minibatch has noise of its own.
    np.testing.assert_allclose(scale, expected, rtol=0.25)
    mean = np.linalg.solve(precision, design.T @ Y / NOISE**2)
    found = NetworkFunction(fitted).means()[0]
    np.testing.assert_allclose((found - mean) / expected, 0.0, atol=0.5)


def test_the_result_is_a_mean_field_normal(fitted):
    assert type(fitted.variational_layers[0].posterior).__name__ == "MeanFieldNormal"
    assert fitted.inference.method.startswith("IVON(epochs=100")
    assert (fitted.predictive(X[:5]).epistemic > 0.0).all()
