"""What every posterior with a name says of itself is true of its draws."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from tfbbb import posteriors

DRAWS = 4000
SHAPE = (3, 2)
# The probability that a right posterior fails one of the comparisons.
RISK = 1e-6


def draw_weights(posterior):
    """Parameters away from their start, and standard normal noise turned into draws."""
    generator = np.random.default_rng(0)
    parameters = {}

    def add_weight(name, shape, initializer):
        parameters[name] = keras.Variable(
            keras.initializers.get(initializer)(shape)
            + generator.normal(0.0, 0.1, shape).astype("float32")
        )
        return parameters[name]

    posterior.add_variables(add_weight, SHAPE, SHAPE[0], "glorot_uniform")
    values = {name: tf.convert_to_tensor(v) for name, v in parameters.items()}
    noise = generator.normal(size=(DRAWS, *posterior.noise_shape(SHAPE)))
    draws = posterior.draw(values, tf.constant(noise, tf.float32), SHAPE)
    return values, np.broadcast_to(draws.numpy(), (DRAWS, *SHAPE)).astype("float64")


@pytest.mark.parametrize("name", posteriors.names())
def test_draws_have_the_declared_moments_and_independence(name):
    posterior = posteriors.get(name)
    values, draws = draw_weights(posterior)
    mean = posterior.mean(values, SHAPE).numpy()
    variance = np.broadcast_to(posterior.variance(values, SHAPE).numpy(), SHAPE)
    bound = stats.norm.isf(RISK / 2 / draws[0].size)
    error = np.sqrt(variance / DRAWS)
    np.testing.assert_array_less(np.abs(draws.mean(0) - mean), bound * error + 1e-6)
    squares = (draws - mean) ** 2
    error = squares.std(0) / np.sqrt(DRAWS)
    np.testing.assert_array_less(
        np.abs(squares.mean(0) - variance), bound * error + 1e-6
    )
    if posterior.deterministic:
        assert np.ptp(draws, axis=0).max() == 0.0
    if posterior.factorised and not posterior.deterministic:
        scores = ((draws - mean) / np.sqrt(variance)).reshape(DRAWS, -1)
        assert stats.kstest(scores.ravel(), "norm").pvalue > RISK
        correlation = np.corrcoef(scores, rowvar=False)
        np.fill_diagonal(correlation, 0.0)
        assert np.abs(correlation).max() < stats.norm.isf(RISK / 30) / np.sqrt(DRAWS)
