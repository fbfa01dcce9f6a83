"""Dtype policies, compilation, devices and reproducibility."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tests.keras_programs.replicas import two_replicas
from tests.keras_programs.twins import (
    CONSTANT,
    POINT,
    assert_same_weights,
    copy_weights,
    regression,
    squared_error,
    twins,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(41, 3)).astype("float32")
Y = X[:, :1] - 0.3 * RANDOM.normal(size=(41, 1)).astype("float32")


def bayesian():
    inputs = keras.Input((3,))
    hidden = tfbbb.layers.DenseVariational(4, "tanh")(inputs)
    model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(hidden))
    model.compile(keras.optimizers.SGD(0.05), run_eagerly=True)
    return model


@pytest.fixture
def policy(request):
    """Sets a policy for one test."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy(before)


@pytest.mark.parametrize("policy", ["float64"], indirect=True)
def test_double_precision_equals_the_keras_twin(policy):
    model, twin = twins(regression)
    ours = model.fit(X, Y, epochs=2, shuffle=False, verbose=0).history
    theirs = twin.fit(X, Y, epochs=2, shuffle=False, verbose=0).history
    np.testing.assert_allclose(
        np.array(ours["nll"]) - CONSTANT, theirs["loss"], rtol=1e-5
    )
    assert_same_weights(model, twin)


@pytest.mark.parametrize(
    "policy",
    ["mixed_float16", pytest.param("mixed_bfloat16", marks=pytest.mark.slow)],
    indirect=True,
)
def test_half_precision_agrees_with_single(policy):
    model, _ = twins(regression, rate=0.01)
    model.fit(X, Y, epochs=2, shuffle=False, verbose=0)
    keras.config.set_dtype_policy("float32")
    single, _ = twins(regression)
    copy_weights(model, single)
    single.fit(X, Y, epochs=0, verbose=0)
    nll, expected = (
        each.evaluate(X, Y, verbose=0, return_dict=True)["nll"]
        for each in (model, single)
    )
    # bfloat16 has 8 bits: outputs are right to 0.4 %, squared errors of size 1 to 2 %.
    assert abs(nll - expected) < 0.02
    mean = np.asarray(model.predictive(X).mean, float)
    np.testing.assert_allclose(mean, single.predictive(X).mean, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("policy", ["mixed_float16"], indirect=True)
def test_loss_scaling_does_not_scale_the_divergence(policy):
    inputs = keras.Input((3,))
    outputs = tfbbb.layers.DenseVariational(1)(inputs)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=squared_error())
    scaled = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(0.01), initial_scale=8.0
    )
    model.compile(scaled, run_eagerly=True)
    history = model.fit(X, Y, epochs=2, verbose=0).history
    assert int(scaled.inner_optimizer.iterations.numpy()) == 4
    expected = np.add(history["nll"], np.divide(history["kl"], 41))
    np.testing.assert_allclose(history["loss"], expected, rtol=1e-3)


def test_one_layer_of_another_type_in_a_plain_network():
    layer = tfbbb.layers.DenseVariational(1, dtype="float64", kl_weight=1 / 41, **POINT)
    network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), layer])
    network.compile("sgd", "mse", run_eagerly=True)
    network.fit(X, Y, verbose=0)
    assert network.predict(X, verbose=0).dtype == np.float64


@pytest.mark.parametrize(
    "options",
    [
        {"steps_per_execution": 3},
        pytest.param({"run_eagerly": True}, marks=pytest.mark.slow),
        pytest.param({"jit_compile": True}, marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore:The model that calls")
@pytest.mark.usefixtures("compiled_functions")
def test_compilation_does_not_change_the_figures(options):
    model, twin = twins(
        regression, **{"run_eagerly": False, "jit_compile": False} | options
    )
    ours = model.fit(X, Y, batch_size=14, shuffle=False, epochs=2, verbose=0).history
    theirs = twin.fit(X, Y, batch_size=14, shuffle=False, epochs=2, verbose=0).history
    np.testing.assert_allclose(
        np.array(ours["nll"]) - CONSTANT, theirs["loss"], rtol=1e-4
    )
    assert_same_weights(model, twin)


def test_seed_decides_training_and_prediction():
    def program(seed):
        keras.utils.set_random_seed(seed)
        model = bayesian()
        history = model.fit(X, Y, epochs=2, verbose=0).history
        return history["loss"], model.predictive(X, seed=3).sample(2)

    (first, draws), (second, same), (other, _) = map(program, (7, 7, 8))
    assert first == second != other
    np.testing.assert_array_equal(draws, same)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_functions")
def test_strategy_of_one_device_changes_nothing():
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        model, twin = twins(regression, run_eagerly=False, jit_compile=False)
    model.fit(X, Y, shuffle=False, verbose=0)
    twin.fit(X, Y, shuffle=False, verbose=0)
    assert_same_weights(model, twin)


@pytest.mark.slow
def test_two_replicas_train_as_one_device():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        figures, rows = process.submit(two_replicas).result()
    assert rows == 41
    for two, one, twin in zip(*figures.values(), strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(two, twin, rtol=1e-4, atol=1e-5)
