import keras
import numpy as np
import pytest

from tests.inference.linear_regression import linear_model, posterior, rows
from tfbbb.inference import IVON
from tfbbb.inference.network_function import NetworkFunction

SCALE = 0.4
# Inputs of scales over two decades, so that no common variance would do.
X, Y = rows(400, [1.0, -1.0, 0.2], scales=[0.1, 1.0, 5.0])


@pytest.mark.slow
def test_variances_are_those_of_the_best_factorised_normal():
    method = IVON(epochs=100, batch_size=40, initial_hessian=10.0)
    keras.utils.set_random_seed(0)
    fitted = method.fit(linear_model(3, SCALE), X, Y, verbose=0)
    mean, covariance = posterior(X, Y, SCALE)
    weights = NetworkFunction(fitted).weights
    scale = np.concatenate([w.stddev.numpy().ravel() for w in weights])
    expected = 1.0 / np.sqrt(np.diag(np.linalg.inv(covariance)))
    assert expected.max() / expected.min() > 10.0
    # The curvature averages 100 estimates, noisier than squares of normals: the
    # gradient of a minibatch has noise of its own.
    np.testing.assert_allclose(scale, expected, rtol=0.25)
    found = NetworkFunction(fitted).means()[0]
    np.testing.assert_allclose((found - mean) / expected, 0.0, atol=0.5)
