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


def negloglik(y, d):
    return -d.log_prob(y)


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


@pytest.mark.parametrize(
    "cls",
    [
        tfpl.DenseFlipout,
        tfpl.DenseReparameterization,
        tfpl.DenseLocalReparameterization,
    ],
    ids=lambda cls: cls.__name__,
)
def test_dense_layers_train_variables_that_their_functions_make(cls):
    model = dense(cls)
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


def test_a_layer_frozen_at_first_can_be_unfrozen():
    scale = tf.Variable(0.5)
    layer = tfpl.DistributionLambda(lambda t: tfd.Normal(t, scale), trainable=False)
    model = keras.Sequential([keras.Input((1,)), layer])
    assert model.trainable_variables == []
    layer.trainable = True
    assert len(model.trainable_variables) == 1


@pytest.mark.parametrize(
    "hidden", [tf.nn.softplus, lambda variable: variable + 0.0], ids=["softplus", "sum"]
)
def test_layers_warn_of_variables_that_they_do_not_train(hidden):
    variable = tf.Variable(1.0, name="hidden_scale")
    layer = tfpl.DistributionLambda(lambda t: tfd.Normal(t, hidden(variable)))
    with pytest.warns(UserWarning, match=r"does not train .*\['hidden_scale:0'\]"):
        layer(tf.zeros([2, 1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(tf.zeros([2, 1]))
        held = tfp.util.DeferredTensor(variable, tf.nn.softplus)
        tfpl.DistributionLambda(lambda t: tfd.Normal(t, held))(tf.zeros([2, 1]))

    def prior(kernel_size, bias_size=0, dtype=None):
        size = kernel_size + bias_size
        return lambda _: tfd.Independent(
            tfd.Normal(tf.zeros(size, dtype), hidden(variable)), 1
        )

    loc = tf.Variable(tf.zeros(2))

    def posterior(kernel_size, bias_size=0, dtype=None):
        make = tfpl.DistributionLambda(
            lambda _: tfd.Independent(tfd.Normal(loc, 1.0), 1)
        )
        return keras.Sequential([tfpl.VariableLayer(1), make])

    layer = tfpl.DenseVariational(1, posterior, prior)
    with pytest.warns(UserWarning, match=r"does not train .*\['hidden_scale:0'\]"):
        layer(tf.zeros([2, 1]))
    assert [v.name for v in layer.trainable_variables] == ["constant", "Variable"]


def test_an_optimizer_updates_a_shared_variable_once():
    shared = tf.Variable(0.7)
    x = keras.Input((4,))
    d = tfpl.DistributionLambda(lambda t: tfd.Normal(t[..., :1], shared), "mean")(x)
    d = tfpl.KLDivergenceAddLoss(tfd.Normal(0.0, shared), use_exact_kl=True)(d)
    d = tfpl.DistributionLambda(lambda t: tfd.Normal(t, shared), "mean")(d)
    model = keras.Model(x, d)
    assert len(model.trainable_variables) == 1
    model.compile(keras.optimizers.SGD(0.01), loss=negloglik)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(-model(X).log_prob(Y)) + tf.add_n(model.losses)
    expected = shared - 0.01 * tape.gradient(loss, shared)
    model.train_on_batch(X, Y)
    np.testing.assert_allclose(shared, expected, rtol=1e-5)


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


def test_checkpoints_restore_variables_that_are_adopted_later(tmp_path):
    scale = tf.Variable(0.5)
    first, second = (
        tfpl.DistributionLambda(lambda t, s=s: tfd.Normal(t, s))
        for s in (tf.Variable(2.0), scale)
    )
    first(X)
    path = tf.train.Checkpoint(first).save(tmp_path / "checkpoint")
    status = tf.train.Checkpoint(second).restore(path)
    second(X)
    status.assert_consumed()
    assert scale.numpy() == 2.0


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


def test_saved_models_hold_adopted_variables(tmp_path):
    scale = tf.Variable(3.0)
    model = keras.Sequential(
        [
            keras.Input((4,)),
            tfpl.DistributionLambda(lambda t: tfd.Normal(t, scale), "stddev"),
            *dense().layers,
        ]
    )
    expected = model.layers[1].bias_posterior.mean()
    model.layers[1].kernel_posterior.distribution.loc.assign(tf.zeros([4, 1]))
    for spread in (
        model.layers[1].kernel_posterior.distribution.scale,
        model.layers[1].bias_posterior.distribution.scale,
    ):
        spread.assign(tf.fill(spread.shape, 1e-6))
    model.export(tmp_path / "exported", verbose=False)
    tf.saved_model.save(model, tmp_path / "saved")
    exported = tf.saved_model.load(tmp_path / "exported")
    saved = tf.saved_model.load(tmp_path / "saved")
    for y in (
        exported.serve(X),
        saved.signatures["serving_default"](tf.constant(X))["output_0"],
    ):
        np.testing.assert_allclose(y, np.broadcast_to(expected, (16, 1)), atol=1e-4)


def test_variables_of_a_bijector_are_trained():
    shift = tf.Variable(0.3)
    bijector = tfb.Chain([tfb.Shift(shift), tfb.Softplus()])
    scale = tfp.util.TransformedVariable(1.0, bijector)
    layer = tfpl.DistributionLambda(lambda t: tfd.Normal(t, scale))
    layer(X)
    assert len(layer.trainable_variables) == 2


class NormalOfItsOwnScale(tfd.Normal):
    def __init__(self, loc):
        parameters = dict(locals())
        self._log_scale = tf.Variable(0.7)
        super().__init__(loc, tfp.util.DeferredTensor(self._log_scale, tf.exp))
        self._parameters = parameters

    @classmethod
    def _parameter_properties(cls, dtype, num_classes=None):
        return {"loc": tfp.util.ParameterProperties()}


def test_variables_that_a_distribution_makes_are_trained():
    prior = NormalOfItsOwnScale(0.0)
    layer = tfpl.KLDivergenceAddLoss(prior, use_exact_kl=True)
    assert len(layer.trainable_variables) == 1


def test_functions_of_dense_variational_may_read_variables():
    loc = tf.Variable(tf.ones(5))

    def posterior(kernel_size, bias_size=0, dtype=None):
        n = kernel_size + bias_size
        return keras.Sequential(
            [tfpl.VariableLayer(2 * n, dtype=dtype), tfpl.IndependentNormal(n)]
        )

    def prior(kernel_size, bias_size=0, dtype=None):
        return lambda _: tfd.Independent(tfd.Normal(loc, 1.0), 1)

    layer = tfpl.DenseVariational(1, posterior, prior, kl_use_exact=True)
    model = keras.Sequential([keras.Input((4,)), layer])
    assert len(model.trainable_variables) == 2
    model.compile(keras.optimizers.SGD(0.1), loss="mse")
    model.fit(X, Y, verbose=0)
    assert np.all(loc != 1.0)


def test_variables_made_in_every_call_are_refused():
    layer = tfpl.DistributionLambda(lambda t: tfd.Normal(t, tf.Variable(1.0)))
    layer(X)
    with pytest.raises(ValueError, match=r"outside of the function.*Variable:0"):
        layer(X)


def test_a_variable_made_in_the_first_call_is_trained():
    made = []

    def normal(t):
        made or made.append(tf.Variable(1.0))
        return tfd.Normal(t, made[0])

    layer = tfpl.DistributionLambda(normal)
    layer(X), layer(X)
    assert len(layer.trainable_variables) == 1
