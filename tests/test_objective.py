"""Minibatch training with `kl_weight=1/N` optimises the true evidence lower bound."""

import keras
import numpy as np
import tensorflow as tf

from tests.repeated_calls import repeated
from tfbbb import losses
from tfbbb.bayes.likelihoods import Normal
from tfbbb.layers import DenseVariational

N = 50
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(N, 3)).astype("float32")
Y = (X @ GENERATOR.normal(size=(3, 2)) + 0.3).astype("float32")


def linear_model(kl_weight):
    """Returns f(x) = x w + b with a known, wide posterior."""
    layer = DenseVariational(
        2, prior="normal", estimator="local", kl_weight=kl_weight, seed=1
    )
    model = keras.Sequential([keras.Input((3,)), layer])
    generator = np.random.default_rng(2)
    for weight in layer.variational_weights:
        weight.variables["mean"].assign(generator.normal(size=weight.shape))
        scale = generator.uniform(0.2, 0.5, size=weight.shape)
        weight.variables["log_scale"].assign(np.log(scale))
    return model


def full_negative_elbo(model):
    """Returns the negative ELBO over N in closed form, for a Normal of scale 1.

    E_q[(y - f)^2] = (y - E[f])^2 + Var[f], and the KL of normals is known.
    """
    kernel, bias = model.layers[0].variational_weights
    mean = tf.matmul(X, kernel.mean) + bias.mean
    variance = tf.matmul(X**2, kernel.variance) + bias.variance
    nll = 0.5 * (tf.square(Y - mean) + variance) + 0.5 * np.log(2 * np.pi)

    def kl(weight, scale):
        terms = (weight.variance + weight.mean**2) / scale**2 - 1.0
        return tf.reduce_sum(0.5 * terms - tf.math.log(weight.stddev / scale))

    total = kl(kernel, 3**-0.5) + kl(bias, 1.0)
    return tf.reduce_mean(tf.reduce_sum(nll, axis=1)) + total / N


def epoch_draws(model, batch_size, num_epochs=200):
    """Returns loss and gradients of whole epochs, averaged with the rows as weights."""
    variables = [variable.value for variable in model.trainable_weights]
    loss_of = losses.NegativeLogLikelihood(Normal(scale=1.0))
    model.compile("sgd", loss=loss_of)

    generator = np.random.default_rng(3)
    orders = np.stack([generator.permutation(N) for _ in range(num_epochs)])
    orders = iter(tf.data.Dataset.from_tensor_slices(orders))

    def epoch():
        order = next(orders)
        loss, gradients = 0.0, 0.0
        for first in range(0, N, batch_size):
            rows = order[first : first + batch_size]
            x, y = tf.gather(X, rows), tf.gather(Y, rows)
            with tf.GradientTape() as tape:
                outputs = model(x, training=True)
                batch_loss = model.compute_loss(x, y, outputs)
            flat = [tf.reshape(g, [-1]) for g in tape.gradient(batch_loss, variables)]
            share = tf.cast(tf.size(rows), tf.float32) / N
            loss += share * batch_loss
            gradients += share * tf.concat(flat, 0)
        return loss, gradients

    return repeated(epoch, num_epochs)


def exact_loss_and_gradient(model):
    variables = [variable.value for variable in model.trainable_weights]
    with tf.GradientTape() as tape:
        loss = full_negative_elbo(model)
    gradients = [np.ravel(g) for g in tape.gradient(loss, variables)]
    return float(loss), np.concatenate(gradients)


# That every estimator estimates it: see `tests/bayes/estimators`.
def test_minibatches_of_an_epoch_give_the_expected_elbo_and_gradient():
    model = linear_model(kl_weight=1 / N)
    loss, gradient = exact_loss_and_gradient(model)
    epochs, gradients = epoch_draws(model, batch_size=16)
    # 5 standard errors of the mean over epochs: 17 figures, one of 100 000 such sets.
    error = epochs.std() / np.sqrt(len(epochs))
    assert abs(epochs.mean() - loss) < 5 * error
    errors = gradients.std(axis=0) / np.sqrt(len(gradients))
    # The divergence's part of a gradient is exact: rounding remains where that is all.
    np.testing.assert_array_less(
        np.abs(gradients.mean(axis=0) - gradient), 5 * errors + 1e-5
    )


def test_a_wrong_weight_breaks_that_equality():
    # One by the number of batches, in place of one by the number of rows.
    model = linear_model(kl_weight=1 / 4)
    loss, gradient = exact_loss_and_gradient(model)
    epochs, gradients = epoch_draws(model, batch_size=16)
    assert abs(epochs.mean() - loss) > 10 * epochs.std() / np.sqrt(len(epochs))
    errors = gradients.std(axis=0) / np.sqrt(len(gradients))
    assert np.max(np.abs(gradients.mean(axis=0) - gradient) / errors) > 10


def test_mean_squared_error_is_a_normal_of_variance_one_half():
    x, y = X, Y[:, :1]
    model = keras.Sequential([keras.Input((3,)), DenseVariational(1, kl_weight=1 / N)])
    model.compile("sgd", loss="mse")
    outputs = model(x)
    half = losses.NegativeLogLikelihood(Normal(scale=0.5**0.5))
    constant = 0.5 * np.log(2 * np.pi * 0.5)
    expected = half(y, outputs) - constant + sum(model.losses)
    np.testing.assert_allclose(model.compute_loss(x, y, outputs), expected, rtol=1e-5)


def test_training_finds_the_known_optimum_of_a_linear_model():
    # The mean-field optimum of a Gaussian posterior has its mean, and as variances
    # the inverse diagonal of its precision (Bishop 2006, section 10.1.2).
    noise, y = 0.5, Y[:, :1]
    layer = DenseVariational(1, prior="normal", use_bias=False, kl_weight=1 / N)
    model = keras.Sequential([keras.Input((3,)), layer])
    rate = keras.optimizers.schedules.CosineDecay(0.05, 1500)
    model.compile(
        keras.optimizers.Adam(rate),
        losses.NegativeLogLikelihood(Normal(scale=noise)),
        steps_per_execution=100,
    )
    data = tf.data.Dataset.from_tensors((X, y)).repeat()
    model.fit(data, steps_per_epoch=1500, verbose=0)
    precision = X.T @ X / noise**2 + 3.0 * np.eye(3)
    mean = np.linalg.solve(precision, X.T @ y / noise**2)
    stddev = 1 / np.sqrt(np.diag(precision))
    # Adam's last steps wander by less than a tenth of a posterior standard deviation.
    error = np.abs(np.asarray(layer.kernel.mean) - mean)[:, 0] / stddev
    assert error.max() < 0.1
    np.testing.assert_allclose(layer.kernel.stddev[:, 0], stddev, rtol=0.05)
