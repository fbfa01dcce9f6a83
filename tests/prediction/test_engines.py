"""The engines draw from the posterior predictive: closed forms and brute force."""

import keras
import numpy as np
import pytest
from scipy import stats

from tests.posterior_draws import engine_draws
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import DenseVariational

METHODS = ("local", "weight")
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(3, 4)).astype("float32")
WIDE = {
    "posterior": MeanFieldNormal(initial_scale=1.0),
    "bias_posterior": MeanFieldNormal(initial_scale=0.3),
    "estimator": "weight",
}


@pytest.fixture(scope="module")
def linear():
    layer = DenseVariational(2, **WIDE)
    model = keras.Sequential([keras.Input((4,)), layer])
    layer.bias.variables["mean"].assign([5.0, -5.0])
    layer.kernel.variables["log_scale"].assign(GENERATOR.normal(size=(4, 2)))
    return model


@pytest.mark.parametrize("method", METHODS)
def test_linear_layer_draws_from_its_closed_form(linear, method):
    kernel, bias = linear.layers[0].variational_weights
    mean = X @ kernel.mean.numpy() + bias.mean.numpy()
    variance = X**2 @ kernel.variance.numpy() + bias.variance.numpy()
    draws = engine_draws(linear, X, method, 4000)
    standardized = (draws - mean) / np.sqrt(variance)
    # N(x mu, x^2 sigma^2): four standard errors of mean and variance, and its shape.
    assert np.all(np.abs(standardized.mean(axis=0)) < 4.0 / np.sqrt(4000))
    assert np.all(np.abs(standardized.var(axis=0) - 1.0) < 4.0 * np.sqrt(2.0 / 4000))
    for row, unit in np.ndindex(3, 2):
        assert stats.kstest(standardized[:, row, unit], "norm").pvalue > 1e-3


def test_draws_of_weights_are_functions_of_all_rows(linear):
    kernel, bias = linear.layers[0].variational_weights
    draws = engine_draws(linear, X, "weight", 4000)
    # Cov[f(x), f(x')] = sum_i x_i x'_i sigma_i^2 + sigma_b^2
    expected = (X[0] * X[1]) @ kernel.variance.numpy() + bias.variance.numpy()
    centred = draws - draws.mean(axis=0)
    products = centred[:, 0] * centred[:, 1]
    error = products.std(axis=0) / np.sqrt(4000)
    assert np.all(np.abs(products.mean(axis=0) - expected) < 4.0 * error)


@pytest.mark.parametrize("method", METHODS)
def test_seeds_and_samples_are_independent(linear, method):
    draws = engine_draws(linear, X, method, 4000)[:, 0, 0]
    others = [
        engine_draws(linear, X, method, 4000, seed=1)[:, 0, 0],
        engine_draws(linear, X, method, 4000, seed=-1)[:, 0, 0],
        np.roll(draws, 1),
    ]
    for other in others:
        assert abs(np.corrcoef(draws, other)[0, 1]) < 4.0 / np.sqrt(4000)


@pytest.mark.parametrize("method", METHODS)
def test_layers_draw_independently_of_each_other(method):
    # f = a(x) + b(x), two layers of the same shape: variances add up.
    inputs = keras.Input((4,))
    parts = [DenseVariational(1, use_bias=False, **WIDE)(inputs) for _ in range(2)]
    model = keras.Model(inputs, keras.layers.Concatenate()(parts))
    first, second = np.moveaxis(engine_draws(model, X, method, 4000)[:, 0], 1, 0)
    assert abs(np.corrcoef(first, second)[0, 1]) < 4.0 / np.sqrt(4000)


def test_kernel_and_bias_draw_independently_of_each_other():
    # Of one input, they have the same shape: shared noise would add their scales.
    layer = DenseVariational(2, **WIDE)
    model = keras.Sequential([keras.Input((1,)), layer])
    expected = layer.kernel.variance[0] + layer.bias.variance
    variance = engine_draws(model, np.ones((1, 1), "float32"), "weight", 4000).var(0)
    # Normal draws: a variance is good to sqrt(2 / S).
    np.testing.assert_allclose(variance[0], expected, rtol=4.0 * np.sqrt(2.0 / 4000))
