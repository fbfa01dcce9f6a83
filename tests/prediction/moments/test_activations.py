"""Mean and variance of activations of a normal are those of its density."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.uncertain_inputs import model_of
from tfbbb.prediction.moments import operations, output_moments
from tfbbb.prediction.moments.quadrature import QUADRATURE_ERROR

CLOSED = [
    "relu",
    "leaky_relu",
    "relu6",
    "hard_sigmoid",
    "hard_tanh",
    "elu",
    "selu",
    "exponential",
]
# Largest errors of mean and standard deviation, in standard deviations of the output,
# for standard deviations 1, 2 and 3 of the input: those that `by_quadrature` states.
BY_QUADRATURE = {
    "tanh": (1e-5, 4e-3, 3e-2),
    "sigmoid": (1e-5, 1e-5, 5e-4),
    "softplus": (1e-5, 1e-5, 5e-5),
    "silu": (1e-5, 3e-5, 2e-3),
    "gelu": (1e-5, 1e-3, 3e-2),
    "mish": (1e-5, 3e-4, 6e-3),
    "log_sigmoid": (1e-5, 1e-5, 5e-5),
}
LAYERS = [
    keras.layers.Activation("relu"),
    keras.layers.ReLU(),
    keras.layers.ReLU(max_value=2.0),
    keras.layers.ReLU(negative_slope=0.3),
    keras.layers.LeakyReLU(0.1),
    keras.layers.PReLU(alpha_initializer=keras.initializers.Constant(0.4)),
    keras.layers.ELU(0.7),
]


def propagated(operation, means, stddevs):
    model = model_of(operation, means, stddevs, (len(means),))
    moments = output_moments(model, tf.ones((1, len(means))))
    return tuple(np.asarray(moment, "float64")[0, 0] for moment in moments)


def integrated(function, means, stddevs):
    """Mean and variance of f(x) by the trapezoidal rule, in float64."""
    points = np.linspace(-9.0, 9.0, 30_001)
    density = np.exp(-0.5 * points**2)
    density /= density.sum()
    x = means[:, None].astype("float64") + stddevs[:, None] * points
    values = np.asarray(function(tf.constant(x)), "float64")
    mean = values @ density
    return mean, (values - mean[:, None]) ** 2 @ density


def grid(stddevs):
    means, stddevs = np.meshgrid(np.linspace(-6.0, 6.0, 25), stddevs)
    return means.ravel().astype("float32"), stddevs.ravel().astype("float32")


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_are_the_integrals_over_the_density(name):
    function = keras.activations.get(name)
    means, stddevs = grid([0.05, 0.4, 1.0, 1.6])
    mean, variance = propagated(keras.layers.Activation(name), means, stddevs)
    expected_mean, expected_variance = integrated(function, means, stddevs)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-5, atol=1e-5)
    # Errors of variances are in units of the input's, times its greatest slope.
    np.testing.assert_allclose(variance, expected_variance, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("name", BY_QUADRATURE)
def test_quadrature_is_as_accurate_as_it_says(name, place):
    means, stddevs = grid([1.0 + place])
    function = keras.activations.get(name)
    mean, variance = propagated(keras.layers.Activation(name), means, stddevs)
    expected_mean, expected_variance = integrated(function, means, stddevs)
    expected = np.sqrt(expected_variance)
    tolerance = BY_QUADRATURE[name][place]
    # A nearly constant output has errors of rounding rather than of quadrature.
    rounding = 1e-6 * (1.0 + np.abs(expected_mean))
    assert np.all(np.abs(mean - expected_mean) < tolerance * expected + rounding)
    assert np.all(np.abs(np.sqrt(variance) - expected) < tolerance * expected + 1e-4)


@pytest.mark.parametrize("layer", LAYERS)
def test_activation_layers_are_the_integrals_of_what_they_compute(layer):
    means, stddevs = grid([0.5, 2.0])
    moments = propagated(layer, means, stddevs)

    def function(x):
        # Of every mean, many values: rows of the layer.
        return tf.transpose(layer(tf.transpose(tf.cast(x, tf.float32))))

    expected = integrated(function, means, stddevs)
    np.testing.assert_allclose(moments[0], expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(moments[1], expected[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [*CLOSED, *BY_QUADRATURE])
def test_what_is_certain_stays_certain(name):
    function = keras.activations.get(name)
    means = np.linspace(-30.0, 20.0, 11).astype("float32")
    mean, variance = propagated(
        keras.layers.Activation(name), means, np.full(11, 1e-30, "float32")
    )
    np.testing.assert_allclose(mean, function(tf.constant(means)), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_less(variance, 1e-9 * (1.0 + mean**2))
    assert np.all(variance >= 0)


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("relu", 0.0, 1.0),
        ("leaky_relu", 0.2, 1.0),
        ("relu6", 0.0, 0.0),
        ("hard_sigmoid", 0.0, 0.0),
        ("hard_tanh", 0.0, 0.0),
        ("elu", 0.0, 1.0),
        ("selu", 0.0, 1.0507),
    ],
)
def test_means_far_from_zero_lose_no_variance(name, left, right):
    means = np.array([-1e4, -300.0, -20.0, 20.0, 300.0, 1e4], "float32")
    stddevs = np.array([1.0, 0.01, 1.0, 1.0, 0.01, 1.0], "float32")
    mean, variance = propagated(keras.layers.Activation(name), means, stddevs)
    expected = keras.activations.get(name)(tf.constant(means))
    np.testing.assert_allclose(mean, expected, rtol=1e-5, atol=1e-5)
    slopes = np.where(means < 0, left, right)
    np.testing.assert_allclose(variance / stddevs**2, slopes**2, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", [*CLOSED, *BY_QUADRATURE])
def test_wide_normals_have_finite_moments(name):
    means = np.array([-50.0, 0.0, 50.0], "float32")
    stddevs = np.array([3.0, 100.0, 1000.0], "float32")
    if name == "exponential":
        means, stddevs = means / 10, stddevs / 500
    mean, variance = propagated(keras.layers.Activation(name), means, stddevs)
    assert np.all(np.isfinite(mean))
    assert np.all(np.isfinite(variance))
    assert np.all(variance >= 0)


@pytest.mark.parametrize("name", [*CLOSED, *BY_QUADRATURE])
def test_only_what_has_a_closed_form_is_exact(name):
    model = model_of(keras.layers.Activation(name), [0.0, 1.0], [1.0, 1.0], (2,))
    last = operations(model)[-1]
    assert last.exact == (name in CLOSED)
    assert last.why == ("" if last.exact else QUADRATURE_ERROR)
