import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
import tf_keras

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


UNFIT = {
    "another_shape": ([ours.DenseFlipout(5)], "shape"),
    "another_kind": ([keras.layers.Dense(4)], "has other weights"),
    "another_number": ([ours.DenseFlipout(4), ours.DenseFlipout(4)], "another number"),
}


@pytest.mark.parametrize(("layers", "message"), UNFIT.values(), ids=UNFIT)
def test_a_model_that_does_not_fit_keeps_its_weights(layers, message):
    legacy = tf_keras.Sequential([theirs.DenseFlipout(4)])
    legacy.build((None, 3))
    model = keras.Sequential([keras.Input((3,)), *layers])
    before = [np.array(w) for w in model.weights]
    with pytest.raises(ValueError, match=message):
        load_tfp_weights(legacy, model)
    for value, w in zip(before, model.weights, strict=True):
        np.testing.assert_array_equal(value, w)


def test_models_that_hold_no_weights_are_named(legacy):
    model = keras.Sequential([keras.Input((3,)), ours.DenseFlipout(4)])
    with pytest.raises(ValueError, match="must be a model of legacy Keras"):
        load_tfp_weights([1.0], model)
    with pytest.raises(ValueError, match="has been built"):
        load_tfp_weights(legacy, keras.Sequential([ours.DenseFlipout(4)]))
