"""Models that begin with independent normals, and what operations make of those."""

import keras
import numpy as np
import tensorflow as tf

from tfbbb.layers import EinsumDenseVariational

SAMPLES = 10**6


def normals(means, stddevs, **options):
    """Returns a layer that makes rows of ones rows of independent normals."""
    size = len(means)
    layer = EinsumDenseVariational("ab,b->ab", size, estimator="weight", **options)
    layer.build((None, size))
    layer.kernel.variables["mean"].assign(means)
    layer.kernel.variables["log_scale"].assign(np.log(stddevs))
    return layer


def model_of(operation, means, stddevs, shape):
    """Returns the model of an operation on independent normals in a shape."""
    inputs = keras.Input((len(means),))
    hidden = keras.layers.Reshape(shape)(normals(means, stddevs)(inputs))
    return keras.Model(inputs, operation(hidden))


def some_normals(shape, seed=0):
    """Returns means and standard deviations for a row of a shape, flat."""
    generator = np.random.default_rng(seed)
    size = np.prod(shape)
    means = generator.normal(size=size).astype("float32")
    return means, generator.uniform(0.2, 1.5, size).astype("float32")


def monte_carlo(operation, means, stddevs, shape, samples=SAMPLES):
    """Returns mean, variance and their standard errors, from draws of the normals."""
    generator = np.random.default_rng(1)
    call = tf.function(lambda x: operation(x))
    blocks = []
    for _ in range(10):
        noise = generator.normal(size=(samples // 10, len(means)))
        draws = (means + stddevs * noise).astype("float32").reshape(-1, *shape)
        blocks.append(call(tf.constant(draws)).numpy())
    return with_standard_errors(np.concatenate(blocks).astype("float64"))


def with_standard_errors(draws):
    """Returns mean, variance and the standard error of each, over the first axis.

    That of the variance follows from the fourth moment: sqrt((m4 - var^2) / S).
    """
    number = len(draws)
    mean = draws.mean(axis=0)
    squares = (draws - mean) ** 2
    variance = squares.mean(axis=0)
    fourth = (squares**2).mean(axis=0)
    variance_error = np.sqrt(np.maximum(fourth - variance**2, 0.0) / number)
    return mean, variance, np.sqrt(variance / number), variance_error


def assert_within_standard_errors(moments, sampled, errors=5.0):
    """Asserts that mean and variance are those of the draws, but for sampling error."""
    for exact, estimate, error in zip(moments, sampled[:2], sampled[2:], strict=True):
        # What float32 rounds beside it.
        tolerance = errors * error + 2e-6 * (1.0 + np.abs(estimate))
        np.testing.assert_array_less(np.abs(exact - estimate), tolerance)


def differ(moments, sampled, errors=5.0):
    """Whether mean or variance are further off than sampling error explains."""
    return any(
        bool(np.any(np.abs(exact - estimate) > errors * error + 1e-5))
        for exact, estimate, error in zip(
            moments, sampled[:2], sampled[2:], strict=True
        )
    )
