"""Every estimator draws what q implies, and its gradient estimates the ELBO's."""

import numpy as np
import pytest
import tensorflow as tf

from tests.repeated_calls import repeated
from tfbbb.layers import DenseVariational

ESTIMATORS = ("local", "weight", "flipout")
DRAWS = 2000


def dense(estimator, *, use_bias=True, rank=2, seed=0):
    """Returns a layer of known posterior, the same whatever its estimator."""
    layer = DenseVariational(
        3, estimator=estimator, use_bias=use_bias, kl_weight=0.1, seed=seed
    )
    layer.build((None, *[5] * (rank - 2), 4))
    generator = np.random.default_rng(1)
    for weight in layer.variational_weights:
        weight.variables["mean"].assign(generator.normal(size=weight.shape))
        scale = generator.uniform(0.2, 0.6, size=weight.shape)
        weight.variables["log_scale"].assign(np.log(scale))
    return layer


def draws_of(layer, x, num_draws=DRAWS):
    return repeated(lambda: layer(x), num_draws)


def exact_moments(layer, x):
    mean = x @ np.asarray(layer.kernel.mean)
    variance = x**2 @ np.asarray(layer.kernel.variance)
    if layer.bias is not None:
        mean = mean + np.asarray(layer.bias.mean)
        variance = variance + np.asarray(layer.bias.variance)
    return mean, variance


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_draws_have_the_mean_and_variance_that_q_implies(estimator):
    x = np.random.default_rng(2).normal(size=(3, 4)).astype("float32")
    layer = dense(estimator)
    draws = draws_of(layer, x)
    mean, variance = exact_moments(layer, x)
    # 18 figures each; 4.5 standard errors are exceeded by none in 8000 of such sets.
    # The kurtosis of flipout and normal draws is 3: Var[s^2] = 2 variance^2 / n.
    error = 4.5 * np.sqrt(variance / DRAWS)
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - mean), error)
    error = 4.5 * variance * np.sqrt(2 / DRAWS)
    np.testing.assert_array_less(np.abs(draws.var(axis=0) - variance), error)


@pytest.mark.parametrize(
    ("estimator", "expected"), [("local", 0.0), ("weight", 1.0), ("flipout", 0.0)]
)
def test_rows_are_as_correlated_as_the_estimator_says(estimator, expected):
    x = np.ones((2, 4), "float32")
    draws = draws_of(dense(estimator), x)[:, :, 0]
    correlation = np.corrcoef(draws.T)[0, 1]
    # The standard error of a correlation of 0 is 1 / sqrt(n).
    assert abs(correlation - expected) < 4.5 / np.sqrt(DRAWS)


def gradient_draws(estimator, num_draws=2000):
    """Returns draws of the gradient of a minibatch's loss, and its expectation."""
    generator = np.random.default_rng(5)
    x = generator.normal(size=(16, 4)).astype("float32")
    y = generator.normal(size=(16, 3)).astype("float32")
    layer = dense(estimator)
    variables = [variable.value for variable in layer.trainable_weights]

    def draw():
        with tf.GradientTape() as tape:
            residual = layer(x) - y
            loss = tf.reduce_mean(tf.reduce_sum(tf.square(residual), axis=1))
        return tf.concat(
            [tf.reshape(g, [-1]) for g in tape.gradient(loss, variables)], 0
        )

    with tf.GradientTape() as tape:
        # E[(f - y)^2] = (E[f] - y)^2 + Var[f]
        mean = x @ layer.kernel.mean + layer.bias.mean
        variance = x**2 @ layer.kernel.variance + layer.bias.variance
        loss = tf.reduce_mean(tf.reduce_sum(tf.square(mean - y) + variance, axis=1))
    exact = tape.gradient(loss, variables)
    exact = np.concatenate([np.ravel(gradient) for gradient in exact])
    return repeated(draw, num_draws), exact


def test_gradients_are_unbiased_and_their_variances_ordered():
    total = {}
    for estimator in ESTIMATORS:
        draws, exact = gradient_draws(estimator)
        error = draws.std(axis=0) / np.sqrt(len(draws))
        # 30 parameters: 5 standard errors are exceeded in one of 60 000 such sets.
        np.testing.assert_array_less(np.abs(draws.mean(axis=0) - exact), 5 * error)
        total[estimator] = draws.var(axis=0).sum()
    assert total["local"] < total["flipout"] < total["weight"]
