import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
import tf_keras

import tfbbb
import tfbbb.lab.compat.tfp_layers as ours
from tfbbb.lab.compat import load_tfp_weights

theirs = tfp.layers
tfd = tfp.distributions


def posterior(layers, sequential):
    def make(kernel_size, bias_size=0, dtype=None):
        n = kernel_size + bias_size
        return sequential(
            [
                layers.VariableLayer(2 * n, dtype=dtype),
                layers.DistributionLambda(
                    lambda t: tfd.Independent(
                        tfd.Normal(t[..., :n], tf.nn.softplus(t[..., n:])), 1
                    )
                ),
            ]
        )

    return make


def network(library, layers, names=("conv", "inner", "out")):
    """A network with a model in it, a normalisation, and three kinds of posterior."""
    make = posterior(layers, library.Sequential)
    conv, inner, out = names
    return library.Sequential(
        [
            layers.Convolution2DFlipout(2, 3, name=conv),
            library.layers.BatchNormalization(),
            library.layers.Flatten(),
            library.layers.Dense(3),
            library.Sequential(
                [library.layers.Dense(3), layers.DenseFlipout(4)], name=inner
            ),
            layers.DenseVariational(2, make, make),
            layers.DenseReparameterization(4, name=out),
        ]
    )


X = np.random.default_rng(0).normal(size=(2, 5, 5, 1)).astype("float32")


@pytest.fixture(scope="module")
def legacy():
    model = network(tf_keras, theirs)
    model(X)
    rng = np.random.default_rng(1)
    for w in model.weights:
        w.assign(rng.uniform(0.1, 1.0, size=w.shape))
    return model


@pytest.fixture(scope="module")
def legacy_dense():
    model = tf_keras.Sequential(
        [theirs.DenseFlipout(4, activation="relu"), theirs.DenseReparameterization(2)]
    )
    model.build((None, 3))
    rng = np.random.default_rng(2)
    for w in model.weights:
        w.assign(rng.normal(size=w.shape))
    return model


def mean_outputs(model):
    """The output with every weight at a draw of the same seed."""
    tf.random.set_seed(5)
    return tf.convert_to_tensor(model(X))


def test_a_network_of_our_layers_takes_every_weight(legacy):
    model = network(keras, ours)
    model(X)
    load_tfp_weights(legacy, model)
    # The same weights and noise: only rounding differs.
    np.testing.assert_allclose(
        mean_outputs(model), mean_outputs(legacy), rtol=1e-4, atol=1e-5
    )


def test_layers_correspond_by_name_where_all_names_do():
    legacy = tf_keras.Sequential(
        [theirs.DenseFlipout(3, name="a"), theirs.DenseFlipout(3, name="b")]
    )
    legacy.build((None, 3))
    x = keras.Input((3,))
    b, a = ours.DenseFlipout(3, name="b"), ours.DenseFlipout(3, name="a")
    model = keras.Model(x, [b(x), a(x)])
    load_tfp_weights(legacy, model)
    for layer, theirs_layer in zip((a, b), legacy.layers, strict=True):
        for w, v in zip(layer.weights, theirs_layer.weights, strict=True):
            np.testing.assert_array_equal(w, v)


def test_native_layers_take_means_and_standard_deviations(legacy_dense):
    model = keras.Sequential(
        [
            keras.Input((3,)),
            tfbbb.layers.DenseVariational(4, activation="relu", kl_weight=0.1),
            tfbbb.layers.DenseVariational(2, bias_posterior="point", kl_weight=0.1),
        ]
    )
    load_tfp_weights(legacy_dense, model)
    for layer, legacy_layer in zip(model.layers, legacy_dense.layers, strict=True):
        kernel = legacy_layer.kernel_posterior
        np.testing.assert_array_equal(layer.kernel.mean, kernel.mean())
        # The logarithm and its exponential, in float32.
        np.testing.assert_allclose(layer.kernel.stddev, kernel.stddev(), rtol=1e-5)
        bias = legacy_layer.bias_posterior.mean()
        np.testing.assert_array_equal(layer.bias.mean, bias)
        assert np.max(layer.bias.stddev) <= np.finfo(np.float32).eps * 1.001


def native(**options):
    layer = tfbbb.layers.DenseVariational(4, kl_weight=0.1, **options)
    return keras.Sequential([keras.Input((3,)), layer])


UNFIT = {
    "another_shape": (
        lambda: keras.Sequential([keras.Input((3,)), ours.DenseFlipout(5)]),
        "shape",
    ),
    "no_bias": (lambda: native(use_bias=False), "has no place for"),
    "a_full_covariance": (
        lambda: native(posterior="full_covariance_normal", estimator="weight"),
        "cannot represent",
    ),
}


@pytest.mark.parametrize(("make", "message"), UNFIT.values(), ids=UNFIT)
def test_a_model_that_does_not_fit_keeps_its_weights(make, message):
    legacy = tf_keras.Sequential([theirs.DenseFlipout(4)])
    legacy.build((None, 3))
    model = make()
    before = [np.array(w) for w in model.weights]
    with pytest.raises(ValueError, match=message):
        load_tfp_weights(legacy, model)
    for value, w in zip(before, model.weights, strict=True):
        np.testing.assert_array_equal(value, w)


def test_models_that_hold_no_weights_are_named(legacy_dense):
    with pytest.raises(ValueError, match="must be a model of legacy Keras"):
        load_tfp_weights([1.0], native())
    with pytest.raises(ValueError, match="has been built"):
        load_tfp_weights(legacy_dense, keras.Sequential([ours.DenseFlipout(4)]))
