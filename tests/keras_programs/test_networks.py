"""Networks of many shapes: wrappers, branches, shared and nested parts, freezing."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tests.keras_programs.twins import (
    CONSTANT,
    POINTS,
    assert_same_weights,
    copy_weights,
    squared_error,
    twins,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(24, 6)).astype("float32")
Y = X[:, :1] - 0.3 * RANDOM.normal(size=(24, 1)).astype("float32")
IMAGES = RANDOM.normal(size=(24, 6, 6, 2)).astype("float32")


def same_training(network, x, y, kind="normal", **options):
    """Asserts that a model trains and predicts as its twin in plain Keras."""
    model, twin = twins(network, kind, rate=0.05, **options)
    fit = {"batch_size": 12, "verbose": 0, "shuffle": False}
    ours, theirs = model.fit(x, y, **fit).history, twin.fit(x, y, **fit).history
    constant = CONSTANT if kind == "normal" else 0.0
    np.testing.assert_allclose(
        np.array(ours["nll"]) - constant, theirs["loss"], rtol=1e-3
    )
    assert_same_weights(model, twin, rtol=1e-3, atol=1e-4)
    return model, twin


def convolutions(layers):
    inputs = keras.Input((6, 6, 2))
    hidden = layers.Conv2D(3, 3, activation="relu", padding="same")(inputs)
    hidden = layers.MaxPooling2D()(hidden)
    hidden = layers.SeparableConv2D(4, 2)(hidden)
    hidden = layers.DepthwiseConv2D(2)(hidden)
    return inputs, layers.Dense(1)(layers.GlobalAveragePooling2D()(hidden))


def siamese(layers):
    inputs = [keras.Input((6,)), keras.Input((6,))]
    shared = layers.Dense(3, "tanh")
    distance = layers.Subtract()([shared(inputs[0]), shared(inputs[1])])
    return inputs, layers.Dense(1)(distance)


def posterior_of_the_last_layer(layers):
    inputs = keras.Input((6,))
    return inputs, layers.Dense(1)(keras.layers.Dense(4, "tanh")(inputs))


@pytest.mark.parametrize(
    ("network", "x"),
    [
        (convolutions, IMAGES),
        (siamese, [X, X[::-1]]),
        (posterior_of_the_last_layer, X),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_network_trains_as_its_twin(network, x):
    same_training(network, x, Y)


def test_batch_normalisation_beside_our_layers():
    def network(layers):
        inputs = keras.Input((6,))
        hidden = layers.BatchNormalization(momentum=0.5)(layers.Dense(4)(inputs))
        return inputs, layers.Dense(1)(layers.Activation("relu")(hidden))

    model, twin = same_training(network, X, Y)
    ours, theirs = model.layers[2], twin.layers[2]
    np.testing.assert_allclose(
        ours.moving_mean, theirs.moving_mean, rtol=1e-3, atol=1e-5
    )
    np.testing.assert_allclose(
        model.predictive(X).mean, twin.predict(X, verbose=0), rtol=1e-3, atol=1e-4
    )


def test_several_outputs_of_a_plain_network():
    def outputs(layers):
        inputs = keras.Input((6,))
        hidden = layers.Dense(4, "tanh")(inputs)
        number = layers.Dense(1, name="number")(hidden)
        return inputs, {"number": number, "sort": layers.Dense(3, name="sort")(hidden)}

    model, twin = (keras.Model(*outputs(layers)) for layers in (POINTS, keras.layers))
    copy_weights(twin, model)
    y = {"number": Y, "sort": RANDOM.integers(0, 3, 24)}
    for each in (model, twin):
        sort = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        each.compile(
            keras.optimizers.SGD(0.1),
            {"number": "mse", "sort": sort},
            loss_weights={"number": 1.0, "sort": 0.3},
            run_eagerly=True,
        )
    for layer in model.layers:
        if isinstance(layer, tfbbb.layers.VariationalLayer):
            layer.kl_weight.assign(1 / 24)
    ours, theirs = (
        each.fit(X, y, shuffle=False, verbose=0).history for each in (model, twin)
    )
    assert set(ours) == set(theirs)
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-4)
    assert_same_weights(model, twin)


def test_frozen_layer_keeps_its_posterior():
    inputs = keras.Input((6,))
    frozen = tfbbb.layers.DenseVariational(4, "tanh", trainable=False)
    model = tfbbb.BayesianModel(
        inputs, tfbbb.layers.DenseVariational(1)(frozen(inputs))
    )
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    before = [np.asarray(w.mean) for w in frozen.variational_weights]
    history = model.fit(X, Y, verbose=0).history
    for old, weight in zip(before, frozen.variational_weights, strict=True):
        np.testing.assert_array_equal(old, weight.mean)
    np.testing.assert_allclose(
        history["loss"], np.add(history["nll"], np.divide(history["kl"], 24)), rtol=1e-5
    )


class Sparse(keras.layers.Layer):
    """Adds a loss of its own."""

    def call(self, x):
        self.add_loss(0.1 * keras.ops.mean(keras.ops.abs(x)))
        return x


@pytest.mark.parametrize(
    "options",
    [
        {},
        {
            "kernel_regularizer": "l2",
            "activity_regularizer": keras.regularizers.L2(0.01),
            "use_bias": False,
        },
        {
            "kernel_constraint": keras.constraints.UnitNorm(),
            "kernel_initializer": keras.initializers.Orthogonal(seed=1),
            "activation": keras.layers.LeakyReLU(0.2),
        },
    ],
    ids=["loss of another layer", "penalties", "constraint"],
)
def test_arguments_and_losses_of_keras_layers_act_as_there(options):
    def network(layers):
        inputs = keras.Input((6,))
        return inputs, layers.Dense(1)(Sparse()(layers.Dense(4, **options)(inputs)))

    model, twin = twins(network, rate=0.05)
    fit = {"batch_size": 12, "verbose": 0, "shuffle": False}
    ours, theirs = model.fit(X, Y, **fit).history, twin.fit(X, Y, **fit).history
    np.testing.assert_allclose(
        np.array(ours["loss"]) - CONSTANT, theirs["loss"], rtol=1e-3
    )
    assert_same_weights(model, twin)


def repeat_in_python(step, x):
    for _ in range(3):
        x = step(x)
    return x


CONTROL_FLOW = {
    "while": lambda step, x: keras.ops.while_loop(
        lambda i, h: i < 3, lambda i, h: (i + 1, step(h)), (0, x)
    )[1],
    "cond": lambda step, x: keras.ops.cond(
        keras.ops.sum(x) > -1e6, lambda: repeat_in_python(step, x), lambda: x
    ),
}


def network_of_steps(repeat, estimator="auto"):
    class Steps(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.dense = tfbbb.layers.DenseVariational(
                6, "tanh", estimator=estimator, seed=1
            )

        def build(self, shape):
            self.dense.build(shape)

        def call(self, x):
            return repeat(self.dense, x)

        def compute_output_shape(self, shape):
            return shape

    keras.utils.set_random_seed(1)
    inputs = keras.Input((6,))
    outputs = keras.layers.Dense(1)(Steps()(inputs))
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=squared_error())
    model.compile(keras.optimizers.SGD(0.1))
    return model


@pytest.mark.few(1)
@pytest.mark.parametrize("name", CONTROL_FLOW)
@pytest.mark.usefixtures("compiled_functions")
def test_layers_in_loops_and_conditions_train_as_unrolled(name):
    expected, model = map(network_of_steps, (repeat_in_python, CONTROL_FLOW[name]))
    theirs, ours = (
        each.fit(X, Y, batch_size=24, verbose=0).history for each in (expected, model)
    )
    for figure, values in theirs.items():
        np.testing.assert_allclose(ours[figure], values, rtol=1e-5)
    assert_same_weights(model, expected)
    mean = expected.predictive(X).mean
    np.testing.assert_allclose(model.predictive(X).mean, mean, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["bayesian", "plain"])
def test_a_loop_over_steps_trains_as_steps_one_by_one(kind):
    """The noise of a step is its own, and its divergence has a gradient."""

    def trained(steps_in_loop):
        keras.utils.set_random_seed(1)
        inputs = keras.Input((6,))
        outputs = tfbbb.layers.DenseVariational(1, seed=1, kl_weight=0.5)(inputs)
        model = (
            tfbbb.BayesianModel(inputs, outputs, likelihood=squared_error())
            if kind == "bayesian"
            else keras.Model(inputs, outputs)
        )
        model.compile(keras.optimizers.SGD(0.05), *(["mse"] * (kind == "plain")))
        model.optimizer.build(model.trainable_variables)
        batch = tf.constant(X), tf.constant(Y)

        @tf.function(autograph=False)
        def take():
            if not steps_in_loop:
                for _ in range(3):
                    model.train_step(batch)
                return
            tf.while_loop(
                lambda step: step < 3,
                lambda step: [[model.train_step(batch), step + 1][1]],
                [0],
            )

        take()
        return [np.asarray(x) for x in model.trainable_variables]

    for ours, expected in zip(trained(True), trained(False), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("compiled_functions")
def test_draws_without_a_gradient_leave_no_loop():
    model = network_of_steps(CONTROL_FLOW["while"], "score_function")
    with pytest.raises(ValueError, match=r"Use another estimator, or `unroll=True`"):
        model.fit(X, Y, verbose=0)


@pytest.mark.parametrize("layer_in_scope", [False, True])
def test_rematerialization_of_posteriors_is_refused(layer_in_scope):
    def model(layer):
        inputs = keras.Input((6,))
        model = tfbbb.BayesianModel(inputs, layer(inputs))
        model.compile("sgd", run_eagerly=True)
        return model

    layer = tfbbb.layers.DenseVariational(1)
    with keras.RematScope("full"):
        if layer_in_scope:
            layer = tfbbb.layers.DenseVariational(1)
        else:
            wrapped = model(layer)
    with pytest.raises(ValueError, match=r"outside of the `keras.RematScope`"):
        (model(layer) if layer_in_scope else wrapped).fit(X, Y, verbose=0)
    with keras.RematScope("activations"):
        allowed = model(tfbbb.layers.DenseVariational(1, "relu"))
    allowed.fit(X, Y, verbose=0)
