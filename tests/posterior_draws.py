"""Draws of a network's outputs, by an engine and by brute force, and their moments."""

import numpy as np
import tensorflow as tf

import tfbbb
from tests.repeated_calls import repeated, running_functions
from tfbbb.prediction.blocks import MAX_FLOATS, block_sizes
from tfbbb.prediction.plan import plan_for
from tfbbb.prediction.program import Program
from tfbbb.prediction.structure import Structure


def engine_draws(
    model,
    x,
    method,
    num_samples,
    seed=0,
    max_floats=MAX_FLOATS,
    mirrored=False,
    compiled=False,
):
    """Returns outputs [S, rows, ..., P] of independent draws, one of every pair.

    Those behind `predictive` with this seed are these and their mirror images, which
    follow each of them where `mirrored`. A network that is run draw by draw is faster
    where `compiled`.
    """
    inputs = tf.nest.map_structure(tf.constant, x)
    structure = Structure.of(model)
    plan = plan_for(structure, method, 1, num_samples, max_floats)
    likelihood = tfbbb.likelihoods.Normal(scale=1.0)
    program = Program(model, [likelihood], plan, inputs)
    moments = program.moments()

    def outputs(inputs, draws):
        return program.outputs(inputs, moments, draws)[0]

    if compiled:
        outputs = running_functions(eagerly=False)(
            tf.function(outputs, autograph=False)
        )
    num_rows = len(tf.nest.flatten(inputs)[0])
    rounds = program.sizes.num_rounds(num_samples if mirrored else 2 * num_samples)
    rows, block = block_sizes(program.sizes, num_rows, rounds, max_floats)
    blocks = []
    for first in range(0, rounds, block):
        count = min(block, rounds - first)
        draws = program.draws(tf.constant([0, seed]), first, tf.constant(count))
        parts = [
            tf.nest.map_structure(lambda v, i=i: v[i : i + rows], inputs)
            for i in range(0, num_rows, rows)
        ]
        blocks.append(np.concatenate([outputs(part, draws) for part in parts]))
    draws = np.moveaxis(np.concatenate(blocks, axis=1), 1, 0)
    if mirrored:
        return draws
    pairs = draws.reshape(-1, 2, structure.members, *draws.shape[1:])
    return pairs[:, 0].reshape(-1, *draws.shape[1:])[:num_samples]


def brute_force_draws(model, x, num_samples):
    """Returns outputs [S, rows, ..., P] of S ordinary calls of the model.

    The layers of the model need `estimator="weight"`: all rows see one draw.
    """
    return repeated(lambda: model(tf.nest.map_structure(tf.constant, x)), num_samples)


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
