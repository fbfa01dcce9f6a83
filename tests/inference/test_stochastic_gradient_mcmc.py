import numpy as np
import pytest
from scipy import linalg

from tests.inference.linear_regression import linear_model, posterior, rows
from tfbbb.inference import SGHMC, SGLD
from tfbbb.inference.log_posterior import LogPosterior
from tfbbb.inference.network_function import NetworkFunction

X, Y = rows(100, [1.0, -2.0])


@pytest.fixture(scope="module")
def model():
    return linear_model(2, 1.0)


@pytest.fixture(scope="module")
def exact():
    return posterior(X, Y, 1.0)


def wasserstein(draws, mean, covariance):
    """The 2-Wasserstein distance between the normals of these moments.

    Givens and Shortt 1984: |m1 - m2|^2 + tr(C1 + C2 - 2 (C1^1/2 C2 C1^1/2)^1/2).
    """
    found = np.cov(draws.T)
    root = linalg.sqrtm(covariance)
    cross = linalg.sqrtm(root @ found @ root).real
    squared = np.sum((draws.mean(axis=0) - mean) ** 2)
    return np.sqrt(squared + np.trace(covariance + found - 2.0 * cross))


@pytest.mark.parametrize(
    "method",
    [
        SGLD(8, 20, 400, 10, 0.25, batch_size=100, learning_rate=0.02),
        SGHMC(8, 20, 400, 10, 0.25, batch_size=100, learning_rate=0.002, friction=0.2),
    ],
    ids=lambda method: type(method).__name__,
)
def test_draws_are_near_the_conjugate_posterior(method, model, exact):
    mean, covariance = exact
    spread = np.sqrt(np.trace(covariance))
    draws = method.sample(LogPosterior(model, X, Y))[0].reshape(-1, 3)
    # 1600 draws, of which at least one in each cycle and chain is independent: 160
    # exact draws are at 0.12 spreads on average.
    assert wasserstein(draws, mean, covariance) < 0.2 * spread
    assert np.trace(np.cov(draws.T)) == pytest.approx(spread**2, rel=0.25)


def test_minibatches_add_noise_but_keep_the_mean(model, exact):
    mean, covariance = exact
    spread = np.sqrt(np.trace(covariance))
    method = SGLD(8, 10, 400, 10, 0.25, batch_size=20, learning_rate=0.005)
    draws = method.sample(LogPosterior(model, X, Y))[0].reshape(-1, 3)
    assert wasserstein(draws, mean, covariance) < 0.5 * spread


def test_fit_returns_the_draws_of_all_chains_as_members(model):
    method = SGLD(2, 2, 40, 3, learning_rate=0.02, seed=3)
    result = method.fit(model, X, Y, verbose=0)
    draws, _ = method.sample(LogPosterior(model, X, Y))
    assert draws.shape == (6, 2, 3)
    np.testing.assert_allclose(
        NetworkFunction(result).means(), np.swapaxes(draws, 0, 1).reshape(12, 3)
    )
    assert set(result.diagnostics) >= {"r_hat", "ess_bulk", "r_hat_weights"}


def test_diverging_steps_are_reported(model):
    method = SGLD(2, 1, 400, 2, learning_rate=100.0)
    with pytest.raises(FloatingPointError, match="smaller learning rate"):
        method.fit(model, X, Y, verbose=0)
