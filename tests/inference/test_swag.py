import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.inference import SWAG
from tfbbb.inference.network_function import NetworkFunction
from tfbbb.model.conversion import with_posterior

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3)).astype("float32")
Y = (np.sin(X[:, 0]) + 0.3 * RANDOM.normal(size=40)).astype("float32")
EPOCHS, RANK, RATE = 12, 4, 0.05


@pytest.fixture(scope="module")
def model():
    inputs = keras.Input((3,))
    hidden = tfbbb.layers.DenseVariational(4, activation="tanh")(inputs)
    return tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(hidden))


@pytest.fixture(scope="module")
def iterates(model):
    """The weights and the noise after each epoch of plain gradient descent."""
    points = with_posterior(model, "point")
    points.compile(keras.optimizers.SGD(RATE, momentum=0.9))
    network = NetworkFunction(points)
    vectors, noises = [], []

    def keep(epoch, logs):
        vectors.append(network.means()[0].astype(float))
        noises.append(points.likelihood.raw_noise.numpy())

    keras.utils.set_random_seed(5)
    callback = keras.callbacks.LambdaCallback(on_epoch_end=keep)
    points.fit(X, Y, batch_size=10, epochs=EPOCHS, verbose=0, callbacks=[callback])
    return np.array(vectors), np.array(noises)


@pytest.fixture(scope="module")
def swag(model, iterates):
    method = SWAG(rank=RANK, epochs=EPOCHS, batch_size=10, learning_rate=RATE)
    keras.utils.set_random_seed(5)
    return method.fit(model, X, Y, verbose=0)


def test_weights_without_a_prior_are_refused():
    inputs = keras.Input((3,))
    layer = tfbbb.layers.DenseVariational(1, posterior="point", prior=None)
    model = tfbbb.BayesianModel(inputs, layer(inputs))
    with pytest.raises(ValueError, match=r"SWAG gives .* takes a prior\. .*'kernel'"):
        SWAG(rank=2, epochs=2).fit(model, X, Y, verbose=0)


def test_mean_and_noise_are_averages_of_the_iterates(swag, iterates):
    vectors, noises = iterates
    np.testing.assert_allclose(
        NetworkFunction(swag).means()[0], vectors.mean(axis=0), atol=1e-5
    )
    np.testing.assert_allclose(
        swag.likelihood.raw_noise, noises.mean(axis=0), atol=1e-5
    )


def test_covariance_is_half_diagonal_and_half_low_rank(swag, iterates):
    vectors, _ = iterates
    until_then = np.cumsum(vectors, axis=0) / np.arange(1, EPOCHS + 1)[:, None]
    columns = (vectors - until_then)[-RANK:].T
    expected = 0.5 * np.diag(vectors.var(axis=0))
    expected += 0.5 * columns @ columns.T / (RANK - 1)
    first = 0
    for weight in NetworkFunction(swag).weights:
        factor = weight.variables["factor"].numpy().reshape(weight.size, RANK)
        scale = np.exp(weight.variables["log_scale"].numpy().ravel())
        own = slice(first, first + weight.size)
        np.testing.assert_allclose(
            np.diag(scale**2) + factor @ factor.T,
            expected[own, own],
            rtol=1e-3,
            atol=1e-5 * expected.max(),
        )
        first += weight.size
    assert first == len(expected)
