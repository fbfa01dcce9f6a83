"""Published programs for `tfp.layers`, with their import changed and smaller."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

import tfbbb.lab.compat.tfp_layers as tfpl

tfd = tfp.distributions


def negloglik(y, rv_y):
    return -rv_y.log_prob(y)


@pytest.fixture
def line():
    rng = np.random.default_rng(0)
    x = rng.uniform(-20, 60, size=150).astype("float32")
    noise = rng.normal(size=150) * np.abs(0.1 * x + 2)
    y = 0.125 * x * (1 + np.sin(x)) + 5 + noise
    return x[:, None], y.astype("float32")


def posterior_mean_field(kernel_size, bias_size=0, dtype=None):
    n = kernel_size + bias_size
    c = np.log(np.expm1(1.0))
    return keras.Sequential(
        [
            tfpl.VariableLayer(2 * n, dtype=dtype),
            tfpl.DistributionLambda(
                lambda t: tfd.Independent(
                    tfd.Normal(
                        loc=t[..., :n], scale=1e-5 + tf.nn.softplus(c + t[..., n:])
                    ),
                    reinterpreted_batch_ndims=1,
                )
            ),
        ]
    )


def prior_trainable(kernel_size, bias_size=0, dtype=None):
    n = kernel_size + bias_size
    return keras.Sequential(
        [
            tfpl.VariableLayer(n, dtype=dtype),
            tfpl.DistributionLambda(
                lambda t: tfd.Independent(
                    tfd.Normal(loc=t, scale=1), reinterpreted_batch_ndims=1
                )
            ),
        ]
    )


def test_regression_with_both_kinds_of_uncertainty(line):
    x, y = line
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = keras.Sequential(
        [
            tfpl.DenseVariational(
                1 + 1, posterior_mean_field, prior_trainable, kl_weight=1 / x.shape[0]
            ),
            tfpl.DistributionLambda(
                lambda t: tfd.Normal(
                    loc=t[..., :1], scale=1e-3 + tf.math.softplus(0.01 * t[..., 1:])
                )
            ),
        ]
    )
    model.compile(optimizer=keras.optimizers.Adam(0.05), loss=negloglik)
    history = model.fit(x, y, epochs=5, verbose=0).history["loss"]
    yhat = model(x[:5])
    assert isinstance(yhat, tfd.Distribution)
    assert yhat.mean().shape == yhat.stddev().shape == (5, 1)
    assert yhat.log_prob(y[:5, None]).dtype == tf.float32
    assert history[-1] < history[0]
    assert model.evaluate(x, y, verbose=0) < history[0]
    assert model.predict(x, verbose=0).shape == (150, 1)
    assert np.isfinite(model.train_on_batch(x[:8], y[:8]))


def images(rows=64, side=8):
    rng = np.random.default_rng(1)
    return (rng.uniform(size=(rows, side, side, 1)) < 0.3).astype("float32")


def encoder(encoded_size, *, regularizer):
    return keras.Sequential(
        [
            keras.layers.InputLayer(shape=(8, 8, 1)),
            keras.layers.Lambda(lambda x: tf.cast(x, tf.float32) - 0.5),
            keras.layers.Conv2D(4, 3, strides=2, activation=tf.nn.leaky_relu),
            keras.layers.Flatten(),
            keras.layers.Dense(
                tfpl.MultivariateNormalTriL.params_size(encoded_size), activation=None
            ),
            tfpl.MultivariateNormalTriL(encoded_size, activity_regularizer=regularizer),
        ]
    )


def decoder(encoded_size):
    return keras.Sequential(
        [
            keras.layers.InputLayer(shape=[encoded_size]),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dense(tfpl.IndependentBernoulli.params_size((8, 8, 1))),
            tfpl.IndependentBernoulli((8, 8, 1), tfd.Bernoulli.logits),
        ]
    )


def test_variational_autoencoder_with_a_regularizer():
    encoded_size = 2
    prior = tfd.Independent(
        tfd.Normal(loc=tf.zeros(encoded_size), scale=1), reinterpreted_batch_ndims=1
    )
    penalised = encoder(
        encoded_size, regularizer=tfpl.KLDivergenceRegularizer(prior, weight=1.0)
    )
    decoded = decoder(encoded_size)
    vae = keras.Model(inputs=penalised.inputs, outputs=decoded(penalised.outputs[0]))
    vae.compile(
        optimizer=keras.optimizers.Adam(learning_rate=1e-2),
        loss=lambda x, rv_x: -rv_x.log_prob(x),
    )
    x = images()
    history = vae.fit(x, x, epochs=4, verbose=0).history["loss"]
    assert history[-1] < history[0]
    xhat = vae(x[:3])
    assert isinstance(xhat, tfd.Distribution)
    assert xhat.mode().shape == xhat.mean().shape == (3, 8, 8, 1)
    z = prior.sample(4)
    assert decoded(z).mean().shape == (4, 8, 8, 1)
    approximate_posterior = penalised(x[:3])
    kl = tfd.kl_divergence(
        approximate_posterior, tfd.MultivariateNormalDiag(tf.zeros(encoded_size))
    )
    assert kl.shape == (3,)
