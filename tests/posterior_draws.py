"""Draws of a network's outputs, by an engine and by brute force, and their moments."""

import numpy as np
import tensorflow as tf

import tfbbb
from tfbbb.prediction.blocks import MAX_FLOATS
from tfbbb.prediction.sampler import Sampler


def engine_draws(model, x, method, num_samples, seed=0, max_floats=MAX_FLOATS):
    """Returns outputs [S, rows, ..., P], those behind `predictive` with this seed."""
    inputs = tf.nest.map_structure(tf.constant, x)
    sampler = Sampler(
        model, tfbbb.likelihoods.Normal(scale=1.0), method, inputs, max_floats
    )
    outputs = sampler.map_rows(
        lambda outputs, first: outputs,
        inputs,
        tf.constant(num_samples),
        tf.constant([0, seed]),
        tf.TensorSpec([None, None, *sampler.event_shape], sampler.output_dtype),
    )
    return np.moveaxis(outputs.numpy(), 1, 0)


def brute_force_draws(model, x, num_samples):
    """Returns outputs [S, rows, ..., P] of S ordinary calls of the model.

    The layers of the model need `estimator="weight"`: all rows see one draw.
    """
    call = tf.function(lambda: model(tf.nest.map_structure(tf.constant, x)))
    return np.stack([call().numpy() for _ in range(num_samples)])


def assert_same_moments(draws, others, errors=5.0):
    """Asserts that mean and variance over the draws agree within standard errors.

    That of a variance follows from the fourth moment: sqrt((m4 - var^2) / S). The tests
    compare some thousand figures in all: chance takes one of these beyond 5 standard
    errors in one of a thousand suites.
    """
    for moment in (_mean, _variance):
        (first, first_error), (second, second_error) = map(moment, (draws, others))
        tolerance = errors * np.sqrt(first_error**2 + second_error**2) + 1e-6
        assert np.all(np.abs(first - second) < tolerance), (first, second, tolerance)


def _mean(draws):
    return draws.mean(axis=0), draws.std(axis=0) / np.sqrt(len(draws))


def _variance(draws):
    deviations = draws - draws.mean(axis=0)
    variance = (deviations**2).mean(axis=0)
    spread = np.maximum((deviations**4).mean(axis=0) - variance**2, 0.0)
    return variance, np.sqrt(spread / len(draws))
