"""Several draws in a training step, and the score function's gradient."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tests.repeated_calls import repeated
from tfbbb.bayes.estimators import Flipout, Local, ScoreFunction, Weight
from tfbbb.bayes.estimators.score_function import score_function_term
from tfbbb.layers import DenseVariational

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(12, 3)).astype("float32")
Y = GENERATOR.normal(size=(12, 1)).astype("float32")


def model_of(estimator, prior="normal"):
    keras.utils.set_random_seed(1)
    posterior = tfbbb.posteriors.MeanFieldNormal(initial_scale=0.7)
    inputs = keras.Input((3,))
    hidden = DenseVariational(
        4, "tanh", estimator=estimator, posterior=posterior, prior=prior
    )(inputs)
    outputs = DenseVariational(1, estimator=estimator, posterior=posterior)(hidden)
    model = tfbbb.BayesianModel(
        inputs, outputs, likelihood=tfbbb.likelihoods.Normal(scale=1.0)
    )
    for layer in model.variational_layers:
        layer.kl_weight.assign(1 / 12)
    return model


def loss_and_gradient_draws(model, number):
    variables = [variable.value for variable in model.trainable_variables]

    def draw():
        with tf.GradientTape() as tape:
            loss = model.compute_loss(X, Y, model(X, training=True))
        gradients = tape.gradient(loss, variables)
        return tf.concat([[loss], *(tf.reshape(g, [-1]) for g in gradients)], 0)

    return repeated(draw, number)


def assert_same_mean(draws, others):
    error = np.hypot(
        draws.std(axis=0) / np.sqrt(len(draws)),
        others.std(axis=0) / np.sqrt(len(others)),
    )
    np.testing.assert_array_less(
        np.abs(draws.mean(axis=0) - others.mean(axis=0)), 5.0 * error + 1e-6
    )


@functools.cache
def brute_force(prior):
    return loss_and_gradient_draws(model_of("weight", prior), 1500)


# A KL divergence in closed form knows neither draws nor estimators.
@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("prior", "estimator"),
    [
        ("scale_mixture_normal", Local(4)),
        ("scale_mixture_normal", Flipout(4)),
        ("scale_mixture_normal", ScoreFunction(16)),
        ("normal", Weight(4)),
    ],
    ids=str,
)
def test_loss_and_gradient_have_the_mean_of_single_draws(prior, estimator):
    draws = loss_and_gradient_draws(model_of(estimator, prior), 600)
    assert_same_mean(draws, brute_force(prior))


def test_gradient_variance_falls_with_the_number_of_draws():
    one, four = (
        loss_and_gradient_draws(model_of(Weight(n)), 1500)[:, 1:].var(axis=0).sum()
        for n in (1, 4)
    )
    # The KL has no noise here; a ratio of sample variances of 1500 draws each.
    assert 3.0 < one / four < 5.3


def test_rows_of_a_plain_model_are_dealt_to_the_draws():
    layer = DenseVariational(
        2, estimator=Weight(num_samples=3), use_bias=False, kl_weight=0.1
    )
    rows = np.ones((8, 4), "float32")
    outputs = np.asarray(layer(rows))
    assert outputs.shape == (8, 2)
    # 8 rows for 3 draws: 3, 3 and 2.
    for part in (outputs[:3], outputs[3:6], outputs[6:]):
        np.testing.assert_allclose(part, part[:1].repeat(len(part), axis=0))
    assert len({row[0] for row in outputs.tolist()}) == 3
    assert len(layer.losses) == 1


def test_control_variate_is_the_mean_loss_of_the_other_draws():
    # Two members of three draws each.
    losses = np.array([1.0, 4.0, 2.0, -3.0, 0.5, 7.0])
    log_prob = tf.Variable(tf.zeros(6, tf.float64))
    with tf.GradientTape() as tape:
        term = score_function_term(tf.constant(losses), log_prob + 0.0, num_samples=3)
    assert float(term) == 0.0
    by_member = losses.reshape(2, 3)
    others = (by_member.sum(axis=1, keepdims=True) - by_member) / 2
    expected = (by_member - others).ravel() / 6
    np.testing.assert_allclose(tape.gradient(term, log_prob), expected, rtol=1e-12)


def test_score_function_is_refused_outside_of_a_bayesian_model():
    layer = DenseVariational(2, estimator="score_function", kl_weight=0.1)
    with pytest.raises(ValueError, match=r"only.*BayesianModel.*Received"):
        layer(X)


def test_numbers_of_samples_that_differ_are_refused():
    inputs = keras.Input((3,))
    hidden = DenseVariational(2, estimator=Weight(2))(inputs)
    outputs = DenseVariational(1, estimator=Weight(3))(hidden)
    with pytest.raises(ValueError, match=r"same number.*num_samples=\[2, 3\]"):
        tfbbb.BayesianModel(inputs, outputs)
