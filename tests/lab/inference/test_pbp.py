import json
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tfbbb.lab.inference import PBP
from tfbbb.lab.inference.pbp import (
    filter_rows,
    output_moments,
)

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(-2.0, 2.0, size=(120, 1))
NOISE = 0.3
Y = 5.0 + 4.0 * np.abs(X[:, 0]) + NOISE * GENERATOR.normal(size=120)


def network(likelihood="normal", activation="relu", units=1, **options):
    inputs = keras.Input((1,))
    hidden = tfbbb.layers.DenseVariational(20, activation=activation)(inputs)
    outputs = tfbbb.layers.DenseVariational(units)(hidden)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood, **options)


@pytest.fixture(scope="module")
def fitted():
    return PBP().fit(network(), X, Y, verbose=0)


def random_q(shapes):
    means = [tf.constant(GENERATOR.normal(size=shape)) for shape in shapes]
    variances = [tf.constant(GENERATOR.gamma(2.0, 0.2, size=shape)) for shape in shapes]
    return means, variances


def test_output_moments_are_those_of_sampled_networks():
    # One hidden layer: its units are independent normals, so the moments are exact.
    means, variances = random_q([(4, 6), (7, 2)])
    x = GENERATOR.normal(size=(1, 3))
    draws, parts = 160_000, []
    for _ in range(4):
        first, second = (
            m + np.sqrt(v) * GENERATOR.normal(size=(draws // 4, *m.shape))
            for m, v in zip(means, variances, strict=True)
        )
        inputs = np.append(x, 1.0) / math.sqrt(4)
        hidden = np.maximum(np.einsum("i,nij->nj", inputs, first), 0.0)
        hidden = np.concatenate([hidden, np.ones((draws // 4, 1))], 1)
        parts.append(np.einsum("ni,nij->nj", hidden, second) / math.sqrt(7))
    sample = np.concatenate(parts)
    mean, variance = output_moments(means, variances, tf.constant(x))
    errors = sample.std(0) / math.sqrt(draws)
    np.testing.assert_array_less(np.abs(sample.mean(0) - mean[0]), 4 * errors)
    squares = (sample - sample.mean(0)) ** 2
    errors = squares.std(0) / math.sqrt(draws)
    np.testing.assert_array_less(np.abs(squares.mean(0) - variance[0]), 4 * errors)


def filtered(means, variances, noise, x, y, learns_noise=False):
    return filter_rows(
        means,
        variances,
        (tf.constant([noise[0]], tf.float64), tf.constant([noise[1]], tf.float64)),
        np.pad(x, [(0, 1), (0, 0)]),
        np.pad(y, [(0, 1), (0, 0)]),
        tf.constant(len(x)),
        learns_noise=learns_noise,
    )


def test_filter_of_one_weight_is_the_conjugate_posterior():
    x, y = GENERATOR.normal(size=(20, 1)), GENERATOR.normal(size=(20, 1))
    noise, prior_mean, prior_variance = 0.4, 0.3, 1.2
    means, variances, _, log_z = filtered(
        [tf.constant([[prior_mean]], tf.float64)],
        [tf.constant([[prior_variance]], tf.float64)],
        (2.0, noise),
        x,
        y,
    )
    precision = 1 / prior_variance + (x**2).sum() / noise
    mean = (prior_mean / prior_variance + (x * y).sum() / noise) / precision
    np.testing.assert_allclose(variances[0], [[1 / precision]], rtol=1e-10)
    np.testing.assert_allclose(means[0], [[mean]], rtol=1e-10)
    covariance = noise * np.eye(20) + prior_variance * x @ x.T
    deviation = y[:, 0] - prior_mean * x[:, 0]
    evidence = -0.5 * (
        deviation @ np.linalg.solve(covariance, deviation)
        + np.linalg.slogdet(covariance)[1]
        + 20 * math.log(2 * math.pi)
    )
    np.testing.assert_allclose(log_z, evidence, rtol=1e-10)


def test_network_learns_function_and_noise(fitted):
    grid = np.linspace(-1.8, 1.8, 30)[:, None]
    prediction = fitted.predictive(grid, method="local")
    error = np.asarray(prediction.mean)[:, 0] - (5.0 + 4.0 * np.abs(grid[:, 0]))
    assert np.sqrt(np.mean(error**2)) < NOISE
    noise = np.sqrt(np.asarray(prediction.aleatoric).mean())
    assert NOISE / 2 < noise < 2 * NOISE
    log_z = fitted.diagnostics["log_z_by_epoch"]
    assert len(log_z) == 40
    assert log_z[-1] > log_z[0] + 50
    assert fitted.log_evidence is None
    json.dumps(fitted.inference.get_config())


def test_returned_weights_have_the_prior_of_the_paper(fitted):
    hidden, last = fitted.variational_layers
    assert hidden.prior == tfbbb.priors.GammaNormal(6.0, 6.0 / 2)
    assert last.bias_prior == tfbbb.priors.GammaNormal(6.0, 6.0 / 21)


@pytest.mark.parametrize(
    "options",
    [
        {"activation": "tanh"},
        {"likelihood": "student_t"},
        {"likelihood": tfbbb.likelihoods.Normal(heteroscedastic=True), "units": 2},
        {"members": 2},
    ],
    ids=str,
)
def test_other_models_are_refused_by_name(options):
    with pytest.raises(ValueError, match=r"PBP (takes|needs|fits).*Received:"):
        PBP().fit(network(**options), X, Y)


def test_row_weights_are_refused():
    with pytest.raises(ValueError, match="repeat rows"):
        PBP().fit(network(), X, Y, sample_weight=np.full(120, 2.0))
