import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

import tfbbb
from tests.inference.linear_regression import linear_model, posterior, rows
from tfbbb.inference import NUTS
from tfbbb.inference.chain_diagnostics import bulk_effective_size
from tfbbb.inference.log_posterior import LogPosterior
from tfbbb.inference.network_function import NetworkFunction

X, Y = rows(30, [1.0, -2.0])
SHORT = {"map_steps": 50, "max_tree_depth": 4, "jit_compile": False}


def test_nuts_has_the_moments_of_the_conjugate_posterior():
    method = NUTS(num_draws=250, num_warmup=100, num_chains=8, members=40, **SHORT)
    draws, figures = method.sample(LogPosterior(linear_model(2, 1.0), X, Y))
    mean, covariance = posterior(X, Y, 1.0)
    size = bulk_effective_size(draws).min()
    assert size > 500.0
    z = (draws.mean(axis=(0, 1)) - mean) / np.sqrt(np.diag(covariance) / size)
    assert np.abs(z).max() < 4.0
    # The entries of a sample covariance in the units of the exact one have standard
    # errors of at most sqrt(2 / size); those of squares mix more slowly than means.
    whiten = np.linalg.inv(np.linalg.cholesky(covariance))
    found = whiten @ np.cov(draws.reshape(-1, 3).T) @ whiten.T
    np.testing.assert_allclose(found, np.eye(3), atol=6.0 * np.sqrt(2.0 / size))
    assert figures["divergences"] == 0
    assert 0.7 < figures["acceptance"] < 0.97


def test_fit_returns_evenly_spaced_draws_as_members():
    model = linear_model(2, 1.0)
    before = NetworkFunction(model).means()
    method = NUTS(num_draws=20, num_warmup=20, members=40, **SHORT)
    result = method.fit(model, X, Y, verbose=0)
    np.testing.assert_array_equal(NetworkFunction(model).means(), before)
    assert len(result.members) == 40
    assert {"r_hat", "r_hat_weights", "ess_bulk"} <= result.diagnostics.keys()
    # Predictions of a sample have its moments.
    weights = NetworkFunction(result).means()
    mean = (np.c_[X, np.ones(30)] @ weights.T).mean(axis=1)
    np.testing.assert_allclose(
        result.predictive(X).mean[:, 0], mean, rtol=1e-4, atol=1e-4
    )


def test_the_log_density_of_weight_and_noise_is_that_of_their_definitions():
    likelihood = tfbbb.likelihoods.Normal(standardize=False)
    model = linear_model(1, 1.0, likelihood, use_bias=False)
    x, y = X[:12, :1], X[:12, 0] + 0.4 * X[12:24, 0]
    target = LogPosterior(model, x, y, learned_scale=1.5)
    w, raw = np.random.default_rng(0).normal(size=(2, 50))
    noise = y.std() * (np.logaddexp(0.0, raw) + 1e-4)
    residuals = y - w[:, np.newaxis] * x[:, 0]
    expected = stats.norm.logpdf(residuals, scale=noise[:, np.newaxis]).sum(axis=1)
    start = np.log(np.expm1(1.0))
    expected += stats.norm.logpdf(w) + stats.norm.logpdf(raw, start, 1.5)
    found = target(tf.constant(np.stack([w, raw], axis=1), tf.float32)).numpy()
    # The sampler knows it up to a constant.
    np.testing.assert_allclose(
        found - found[0], expected - expected[0], rtol=1e-4, atol=1e-3
    )


def test_scales_of_priors_are_found():
    inputs = keras.Input((2,))
    prior = tfbbb.priors.Normal(scale=0.3)
    other = tfbbb.priors.Normal(scale=1.0)
    layer = tfbbb.layers.DenseVariational(1, prior=prior, bias_prior=other)
    model = tfbbb.BayesianModel(inputs, layer(inputs))
    target = LogPosterior(model, X, Y, learned_scale=1.5)
    np.testing.assert_allclose(target.prior_scale(), [0.3, 0.3, 1.0, 1.5], rtol=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"posterior": "point", "prior": None}, "without a prior .* prior=None"),
        ({"prior": "empirical_normal"}, "stays the same, .* 'gamma_normal'"),
    ],
)
def test_weights_without_a_fixed_prior_are_refused(options, message):
    inputs = keras.Input((10,))
    layer = tfbbb.layers.DenseVariational(1, **options)
    model = tfbbb.BayesianModel(inputs, layer(inputs))
    with pytest.raises(ValueError, match=message):
        NUTS().fit(model, X, Y)
