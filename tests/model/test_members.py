"""An ensemble of posteriors in one graph: each trains as it would alone."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tests.ensembles import ALMOST_A_POINT, X, Y, network
from tests.repeated_calls import repeated
from tfbbb.bayes.estimators import Flipout, ScoreFunction
from tfbbb.layers import DenseVariational


@pytest.mark.parametrize("prior", ["student_t", "scale_mixture_normal"])
def test_each_draw_of_a_member_has_the_factor_of_its_divergence(prior):
    def kl(factors):
        keras.utils.set_random_seed(1)
        layer = DenseVariational(
            1, prior=prior, estimator=Flipout(num_samples=2), members=3, kl_weight=1.0
        )
        layer.build((None, 3))
        mean = layer.kernel.variables["mean"]
        mean.assign(np.concatenate([np.full((1, 3, 1), 9.0), mean[1:]]))
        layer.kl_factors = np.array(factors, np.float32)
        layer(np.ones((6, 3)), training=True)
        return float(layer.step_kl)

    of_each = [kl(3 * np.eye(3)[member]) for member in range(3)]
    assert of_each[0] > 2 * max(of_each[1:])
    np.testing.assert_allclose(kl([1, 2, 3]), np.dot([1, 2, 3], of_each) / 3, rtol=1e-5)


def linear(members, estimator):
    inputs = keras.Input((3,))
    layer = DenseVariational(1, prior="normal", estimator=estimator, kl_weight=1 / 40)
    model = tfbbb.BayesianModel(
        inputs,
        layer(inputs),
        likelihood=tfbbb.likelihoods.Normal(scale=1.0),
        members=members,
    )
    generator = np.random.default_rng(3)
    for weight in layer.variational_weights:
        shape = weight.variables["mean"].shape
        weight.variables["mean"].assign(generator.normal(size=shape))
        weight.variables["log_scale"].assign(generator.uniform(-1.5, -0.7, size=shape))
    return model, layer


def exact_gradient(layer, index):
    """Returns the gradient of one member's negative ELBO over N, in closed form."""
    parameters = [
        tf.Variable(variable[index])
        for weight in layer.variational_weights
        for variable in weight.variables.values()
    ]
    with tf.GradientTape() as tape:
        mean, log_scale, bias_mean, bias_log_scale = parameters
        variance, bias_variance = tf.exp(2 * log_scale), tf.exp(2 * bias_log_scale)
        output = X @ mean + bias_mean
        spread = tf.square(X) @ variance + bias_variance
        nll = tf.reduce_mean(0.5 * (tf.square(Y - output) + spread))
        kl = 0.5 * tf.reduce_sum((variance + mean**2) * 3.0) - tf.reduce_sum(log_scale)
        kl += 0.5 * tf.reduce_sum(bias_variance + bias_mean**2)
        kl -= tf.reduce_sum(bias_log_scale)
        loss = nll + kl / len(X)
    return np.concatenate([np.ravel(g) for g in tape.gradient(loss, parameters)])


# Estimators of several draws: members have the gradients of single posteriors (above),
# and those have the mean of single draws (`test_num_samples.py`).
@pytest.mark.few(2)
@pytest.mark.parametrize(
    "estimator", ["local", "weight", "flipout", ScoreFunction(num_samples=8)], ids=repr
)
def test_each_member_follows_its_own_evidence_bound_in_expectation(estimator):
    keras.utils.set_random_seed(2)
    model, layer = linear(2, estimator)
    variables = [variable.value for variable in model.trainable_variables]

    def draw():
        with tf.GradientTape() as tape:
            loss = model.compute_loss(X, Y, model(X, training=True))
        gradient = tape.gradient(loss, variables)
        return tf.concat([tf.reshape(g, [2, -1]) for g in gradient], axis=1)

    draws = repeated(draw, 800)
    for index in range(2):
        flat = draws[:, index]
        error = flat.std(axis=0) / np.sqrt(len(draws)) + 1e-6
        deviation = np.abs(flat.mean(axis=0) - exact_gradient(layer, index))
        np.testing.assert_array_less(deviation, 5.0 * error)


def test_learned_noise_is_each_members_own():
    model = network(2)
    model.likelihood.raw_noise.assign([[-1.0], [2.0]])
    together = model.predictive(X, num_samples=2).aleatoric
    each = [m.predictive(X, num_samples=2).aleatoric for m in model.members]
    assert not np.allclose(each[0], each[1])
    np.testing.assert_allclose(together, np.mean(each, axis=0), rtol=1e-5)


def _built(layer):
    layer.build((None, 3))
    return layer


def test_members_of_a_keras_model_are_parts_of_the_batch():
    model = keras.Sequential(
        [
            keras.Input((3,)),
            DenseVariational(
                1,
                posterior=ALMOST_A_POINT,
                bias_posterior=ALMOST_A_POINT,
                members=2,
                kl_weight=0.1,
            ),
        ]
    )
    kernels = np.asarray(model.layers[0].kernel.mean)
    both = np.concatenate([X, X])
    with pytest.warns(UserWarning, match=r"once for each member.*BayesianModel"):
        model(both, training=True)
    outputs = np.asarray(model(both))
    np.testing.assert_allclose(outputs[:40], X @ kernels[0], atol=1e-4)
    np.testing.assert_allclose(outputs[40:], X @ kernels[1], atol=1e-4)


def test_shared_deterministic_layers_are_warned_of():
    inputs = keras.Input((3,))
    hidden = keras.layers.Dense(4, name="shared")(inputs)
    outputs = DenseVariational(1)(hidden)
    with pytest.warns(UserWarning, match=r"share the weights.*'shared'.*point"):
        tfbbb.BayesianModel(inputs, outputs, members=2)


def test_bad_numbers_of_members_are_refused():
    with pytest.raises(ValueError, match=r"positive integer.*members=0"):
        DenseVariational(1, members=0)
    with pytest.raises(IndexError, match=r"2 members. Received: index=2"):
        network(2).members[2]
    inputs = keras.Input((3,))
    hidden = DenseVariational(2, members=2)(inputs)
    outputs = DenseVariational(1, members=3)(hidden)
    with pytest.raises(ValueError, match=r"same number.*\[2, 3\]"):
        tfbbb.BayesianModel(inputs, outputs)
    with pytest.raises(ValueError, match=r"has 2 members. Received: members=4"):
        tfbbb.BayesianModel(inputs, hidden, members=4)
    with pytest.raises(ValueError, match=r"do not support members.*regularizer"):
        _built(DenseVariational(1, members=2, kernel_regularizer="l2"))
