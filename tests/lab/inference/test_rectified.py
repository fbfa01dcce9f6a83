"""Mean and variance of the positive part of a normal are those of its density."""

import numpy as np
import tensorflow as tf

from tfbbb.lab.inference.pbp import rectified


def moments(means, stddevs):
    found = rectified(tf.constant(means), tf.constant(stddevs) ** 2)
    return [moment.numpy().astype("float64") for moment in found]


def test_closed_forms_are_the_integrals_over_the_density():
    grid = np.meshgrid(np.linspace(-6.0, 6.0, 25), [0.05, 0.4, 1.0, 1.6])
    means, stddevs = (axis.ravel().astype("float32") for axis in grid)
    points = np.linspace(-9.0, 9.0, 30_001)
    density = np.exp(-0.5 * points**2)
    density /= density.sum()
    values = np.maximum(means[:, None] + stddevs[:, None] * points, 0.0)
    expected = values @ density
    mean, variance = moments(means, stddevs)
    np.testing.assert_allclose(mean, expected, rtol=1e-5, atol=1e-5)
    spread = (values - expected[:, None]) ** 2 @ density
    np.testing.assert_allclose(variance, spread, rtol=1e-4, atol=1e-5)


def test_means_far_from_zero_lose_no_variance():
    means = np.array([-1e4, -300.0, -20.0, 20.0, 300.0, 1e4], "float32")
    stddevs = np.array([1.0, 0.01, 1.0, 1.0, 0.01, 1.0], "float32")
    mean, variance = moments(means, stddevs)
    np.testing.assert_allclose(mean, np.maximum(means, 0.0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(variance / stddevs**2, means > 0.0, rtol=1e-4, atol=1e-6)


def test_a_certain_input_stays_certain():
    means = np.linspace(-30.0, 20.0, 11).astype("float32")
    mean, variance = moments(means, np.full(11, 1e-15, "float32"))
    np.testing.assert_allclose(mean, np.maximum(means, 0.0), rtol=1e-5, atol=1e-6)
    assert np.all((variance >= 0.0) & (variance <= 1e-9 * (1.0 + mean**2)))
