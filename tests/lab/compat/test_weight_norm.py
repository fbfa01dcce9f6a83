"""Weight normalisation: its equation, its initialisation, and the wrapper of TFP."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tensorflow_probability.python.layers.weight_norm import (
    WeightNorm as TheirWeightNorm,
)

import tfbbb.lab.compat.tfp_layers as tfpl

LAYERS = {
    "dense": ((4,), lambda k: k.Dense(3, activation="relu")),
    "dense_without_bias": ((4,), lambda k: k.Dense(3, use_bias=False)),
    "dense_over_time": ((6, 4), lambda k: k.Dense(3)),
    "convolution": ((7, 6, 2), lambda k: k.Conv2D(3, 2, activation="tanh")),
    "transposed": ((5, 6, 2), lambda k: k.Conv2DTranspose(3, 2, strides=2)),
}


def inputs_of(shape, rows=40):
    return tf.random.normal([rows, *shape], mean=1.0, stddev=2.0, seed=1)


@pytest.mark.few(5)
@pytest.mark.parametrize("data_init", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_wrapped_layers_compute_as_those_of_tfp(name, data_init):
    shape, make = LAYERS[name]
    ours = tfpl.WeightNorm(make(keras.layers), data_init=data_init)
    theirs = TheirWeightNorm(make(tf_keras.layers), data_init=data_init)
    x = inputs_of(shape)
    ours.build(x.shape), theirs.build(x.shape)
    kernel = np.random.default_rng(1).normal(size=ours.v.shape).astype("float32")
    ours.v.assign(kernel), theirs.v.assign(kernel)
    for _ in range(2):
        np.testing.assert_allclose(ours(x), theirs(x), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.g, theirs.g, rtol=1e-5)
    np.testing.assert_array_equal(ours.v, kernel)
    assert ours.initialized.numpy()


@pytest.mark.few(3)
@pytest.mark.parametrize("name", LAYERS)
def test_first_rows_give_outputs_of_mean_0_and_variance_1(name):
    shape, make = LAYERS[name]
    layer = make(keras.layers)
    layer.activation = None
    x = inputs_of(shape)
    y = tf.function(tfpl.WeightNorm(layer).__call__)(x)
    axes = tuple(range(len(y.shape) - 1))
    if layer.use_bias:
        np.testing.assert_allclose(np.mean(y, axes), 0.0, atol=1e-4)
    np.testing.assert_allclose(np.var(y, axes), 1.0, rtol=1e-3)


@pytest.mark.filterwarnings("ignore:`WeightNorm` is tested")
def test_channels_may_come_first():
    convolutions = [
        keras.layers.Conv1D(3, 1, data_format=data_format)
        for data_format in ("channels_first", "channels_last")
    ]
    first, last = (tfpl.WeightNorm(k, name=k.data_format) for k in convolutions)
    x = inputs_of((2, 5))
    transposed = tf.transpose(x, [0, 2, 1])
    first.build(x.shape), last.build(transposed.shape)
    last.v.assign(first.v)
    y = last(transposed)
    np.testing.assert_allclose(
        tf.transpose(first(x), [0, 2, 1]), y, rtol=1e-4, atol=1e-5
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("build", [True, False])
@pytest.mark.parametrize("jit_compile", ["auto", True, False])
def test_models_train_lengths_and_directions(build, jit_compile):
    x = inputs_of((4,)).numpy()
    y = x[:, :1] - 2 * x[:, 1:2]
    layers = [tfpl.WeightNorm(keras.layers.Dense(8, "tanh")), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((4,)), *layers] if build else layers)
    model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=jit_compile)
    history = model.fit(x, y, batch_size=10, epochs=1, verbose=0).history["loss"]
    before = [v.numpy() for v in model.trainable_variables]
    history += model.fit(x, y, batch_size=10, epochs=5, verbose=0).history["loss"]
    assert history[-1] < 0.8 * history[0]
    assert len(before) == 5
    for old, new in zip(before, model.trainable_variables, strict=True):
        assert np.all(np.not_equal(old, new))
    # The first batch alone initialises.
    assert layers[0].initialized.numpy()


def test_penalties_of_the_wrapped_layer_count_once():
    layer = tfpl.WeightNorm(
        keras.layers.Dense(2, kernel_regularizer="l2", activity_regularizer="l2")
    )
    x = inputs_of((3,), rows=5)
    y = layer(x)
    kernel, activity = layer.losses
    found = sorted([float(kernel), float(activity)])
    expected = [0.01 * np.sum(np.square(layer.v)), 0.01 * np.sum(np.square(y)) / 5]
    np.testing.assert_allclose(found, sorted(expected), rtol=1e-5)


@pytest.mark.few(3)
@pytest.mark.parametrize("called", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_wrapped_layers_are_saved_with_their_state(name, called, tmp_path):
    shape, make = LAYERS[name]
    model = keras.Sequential(
        [keras.Input(shape), tfpl.WeightNorm(make(keras.layers), data_init=True)]
    )
    x = inputs_of(shape)
    if called:
        model(x)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.layers[0].initialized.numpy() == called
    # A layer that has been initialised ignores the mean of other rows.
    np.testing.assert_allclose(loaded(x + 1), model(x + 1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "mixed_float16"])
def test_wrapped_layers_keep_their_dtype(dtype):
    layer = tfpl.WeightNorm(keras.layers.Dense(2, dtype=dtype))
    x = inputs_of((3,))
    y = layer(x)
    policy = keras.dtype_policies.get(dtype)
    assert y.dtype == policy.compute_dtype
    assert layer.g.dtype == layer.v.dtype == policy.variable_dtype
    np.testing.assert_allclose(np.var(y, 0, "float64"), 1.0, rtol=1e-2)


def test_stateless_calls_use_the_values_given():
    layer = tfpl.WeightNorm(keras.layers.Dense(2))
    x = inputs_of((3,))
    y = layer(x)
    doubled = [2 * v.value for v in layer.trainable_variables]
    fixed = [v.value for v in layer.non_trainable_variables]
    outputs, _ = layer.stateless_call(doubled, fixed, x)
    # Twice the direction is the same direction.
    np.testing.assert_allclose(outputs, 2 * y, rtol=1e-4, atol=1e-5)


def test_bad_layers_are_named():
    with pytest.raises(ValueError, match=r"must be a `keras\.Layer`"):
        tfpl.WeightNorm(lambda x: x)
    with pytest.warns(UserWarning, match="is tested with"):
        layer = tfpl.WeightNorm(keras.layers.Activation("relu"))
    with pytest.raises(ValueError, match="variable `kernel`"):
        layer(tf.ones([2, 3]))
