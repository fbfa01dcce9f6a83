import math

import numpy as np
import pytest

import tfbbb
from tfbbb.bayes.divergences import kl_divergence
from tfbbb.layers import DenseVariational
from tfbbb.model.layer_posterior import layer_posterior, signal_to_noise

GENERATOR = np.random.default_rng(0)


def test_collapsed_is_the_share_of_weights_near_the_prior():
    layer = DenseVariational(2, prior="normal")
    layer.build((None, 4))
    # KL = mean^2 / (2 s^2) with s = 1/2: 0.005, 0.02, 0.08, ... nats.
    means = 0.05 * 2.0 ** np.arange(8).reshape(4, 2)
    layer.kernel.variables["mean"].assign(means)
    layer.kernel.variables["log_scale"].assign(np.full((4, 2), np.log(0.5)))
    layer.bias.variables["log_scale"].assign(np.zeros(2))
    # The biases are the prior, and KL of the smallest mean is below 0.01 nats.
    assert layer_posterior(layer).collapsed == 3 / 10


def test_statistics_are_means_over_members():
    layer = DenseVariational(4, members=3)
    layer.build((None, 5))
    mean = layer.kernel.variables["mean"]
    mean.assign(GENERATOR.normal(size=mean.shape))
    posterior = layer_posterior(layer)
    every = sum(np.asarray(kl_divergence(w, None)) for w in layer.variational_weights)
    assert every.shape == (3,)
    np.testing.assert_allclose(posterior.kl, every.mean(), rtol=1e-6)
    assert posterior.signal_to_noise.shape == (3 * 24,)
    np.testing.assert_allclose(posterior.divergences.sum(), every.sum(), rtol=1e-5)


def test_collapse_of_dependent_weights_uses_their_marginals():
    family = tfbbb.posteriors.FullCovarianceNormal(initial_scale=1.0)
    options = {"posterior": family, "prior": "normal", "bias_posterior": family}
    layer = DenseVariational(2, kernel_initializer="zeros", **options)
    layer.build((None, 4))
    assert layer_posterior(layer).collapsed == 1.0
    correlations = layer.bias.variables["correlations"]
    correlations.assign([1.0])
    posterior = layer_posterior(layer)
    assert posterior.collapsed == 0.9
    # N(0, 2) from N(0, 1)
    expected = 0.5 * (2.0 - 1.0 - math.log(2.0))
    assert posterior.divergences.max() == pytest.approx(expected, rel=1e-5)


def test_weights_without_a_spread_have_infinite_ratios():
    layer = DenseVariational(2, posterior="point", bias_posterior="point")
    layer.build((None, 4))
    posterior = layer_posterior(layer)
    assert np.isinf(posterior.signal_to_noise[:8]).all()
    assert posterior.collapsed is None


def test_ratios_without_variance_are_infinite_or_0():
    layer = DenseVariational(3)
    layer.build((None, 1))
    layer.bias.variables["mean"].assign([0.0, -2.0, 3.0])
    layer.bias.variables["log_scale"].assign([-np.inf, -np.inf, np.log(2.0)])
    np.testing.assert_allclose(
        signal_to_noise(layer.bias), [0.0, np.inf, 1.5], rtol=1e-6
    )
