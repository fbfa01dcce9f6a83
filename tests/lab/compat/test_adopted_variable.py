"""Variables of TensorFlow that users make are variables of the layers."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

import tfbbb.lab.compat.tfp_layers as tfpl

tfd = tfp.distributions
tfb = tfp.bijectors

X = np.random.default_rng(0).normal(size=(16, 4)).astype("float32")
Y = X[:, :1]


def normal_of_variables(dtype, shape, name, trainable, add_variable_fn):
    loc = tf.random.normal(shape, stddev=0.1, dtype=dtype)
    scale = tfp.util.TransformedVariable(
        tf.fill(shape, tf.constant(0.05, dtype)), tfb.Softplus(), trainable=trainable
    )
    loc = tf.Variable(loc, trainable=trainable, name=f"{name}_loc")
    return tfd.Independent(tfd.Normal(loc, scale), len(shape))


def dense(cls=tfpl.DenseFlipout, **options):
    functions = {
        "kernel_posterior_fn": normal_of_variables,
        "bias_posterior_fn": normal_of_variables,
        "kernel_prior_fn": normal_of_variables,
    }
    layer = cls(1, **{**functions, **options})
    return keras.Sequential([keras.Input((4,)), layer])


def scaled(scale):
    """A model with a scale that is a variable, of every layer that adopts one."""
    prior = tfd.Independent(tfd.Normal(tf.Variable([0.25]), 1.0), 1)
    return keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(2),
            tfpl.IndependentNormal(
                1, activity_regularizer=tfpl.KLDivergenceRegularizer(prior)
            ),
            tfpl.KLDivergenceAddLoss(
                tfd.Independent(tfd.Normal(tf.Variable([0.5]), 1.0), 1)
            ),
            keras.layers.Dense(1),
            tfpl.DistributionLambda(lambda t: tfd.Normal(t, scale)),
        ]
    )


def test_layers_train_variables_that_their_functions_make():
    model = dense()
    assert len(model.trainable_variables) == 6
    assert model.count_params() == 2 * (4 + 1 + 4)
    model.compile(keras.optimizers.SGD(0.1), loss="mse")
    before = [v.numpy() for v in model.trainable_variables]
    model.fit(X, Y, verbose=0)
    for old, variable in zip(before, model.trainable_variables, strict=True):
        assert np.all(old != variable.numpy())


def test_a_frozen_layer_does_not_train_variables_of_its_functions():
    model = dense(trainable=False)
    assert (len(model.weights), model.trainable_variables) == (6, [])
    model = dense()
    model.layers[0].trainable = False
    assert model.trainable_variables == []
    model.layers[0].trainable = True
    assert len(model.trainable_variables) == 6


def test_layers_warn_of_variables_that_they_do_not_train():
    variable = tf.Variable(1.0, name="hidden_scale")
    layer = tfpl.DistributionLambda(lambda t: tfd.Normal(t, tf.nn.softplus(variable)))
    with pytest.warns(UserWarning, match=r"does not train .*\['hidden_scale:0'\]"):
        layer(tf.zeros([2, 1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(tf.zeros([2, 1]))
        held = tfp.util.DeferredTensor(variable, tf.nn.softplus)
        tfpl.DistributionLambda(lambda t: tfd.Normal(t, held))(tf.zeros([2, 1]))


def test_a_joint_layer_trains_variables_of_its_functions():
    loc, prior_loc = tf.Variable(tf.zeros(2)), tf.Variable(0.0)

    def posterior(kernel_size, bias_size=0, dtype=None):
        make = tfpl.DistributionLambda(
            lambda _: tfd.Independent(tfd.Normal(loc, 1.0), 1)
        )
        return keras.Sequential([tfpl.VariableLayer(1), make])

    def prior(kernel_size, bias_size=0, dtype=None):
        normal = tfd.Normal(prior_loc, tf.ones(kernel_size + bias_size))
        return lambda _: tfd.Independent(normal, 1)

    layer = tfpl.DenseVariational(1, posterior, prior)
    layer(tf.zeros([2, 1]))
    names = sorted(variable.name for variable in layer.trainable_variables)
    assert names == ["Variable", "Variable", "constant"]


def assert_equal_weights(first, second):
    assert len(first.weights) == len(second.weights)
    for a, b in zip(first.weights, second.weights, strict=True):
        np.testing.assert_array_equal(a, b)


def posterior_of_twice_a_variable():
    def posterior_fn(dtype, shape, name, trainable, add_variable_fn):
        loc = add_variable_fn(name, shape, dtype, initializer="random_normal")
        return tfd.Independent(tfd.Deterministic(2 * loc.numpy()), len(shape))

    return dense(
        tfpl.DenseReparameterization,
        kernel_posterior_fn=posterior_fn,
        kernel_divergence_fn=None,
    )


@pytest.mark.parametrize(
    "make",
    [lambda: scaled(tf.Variable(2.0)), dense, posterior_of_twice_a_variable],
    ids=["scaled", "dense", "added"],
)
def test_checkpoints_restore_every_variable(make, tmp_path):
    first, second = make(), make()
    for number, variable in enumerate(first.trainable_variables):
        variable.assign(tf.fill(variable.shape, 0.1 * number))
    path = tf.train.Checkpoint(model=first).save(tmp_path / "checkpoint")
    tf.train.Checkpoint(model=second).restore(path).assert_consumed()
    assert_equal_weights(first, second)


@pytest.mark.parametrize("make", [dense, lambda: scaled(tf.Variable(2.0))])
def test_keras_files_restore_every_variable(make, tmp_path):
    first = make()
    assert len(first.weights) >= 6
    first.compile(keras.optimizers.SGD(0.01), loss="mse")
    first.fit(X, Y, verbose=0)
    first.save_weights(tmp_path / "model.weights.h5")
    second = make()
    second.load_weights(tmp_path / "model.weights.h5")
    assert_equal_weights(first, second)


def test_variables_made_in_every_call_are_refused():
    layer = tfpl.DistributionLambda(lambda t: tfd.Normal(t, tf.Variable(1.0)))
    layer(X)
    with pytest.raises(ValueError, match=r"outside of the function.*Variable:0"):
        layer(X)
