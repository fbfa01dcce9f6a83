"""Loss scaling, compilation and reproducibility."""

import keras
import numpy as np
import pytest

import tfbbb
from tests.keras_programs.twins import (
    CONSTANT,
    assert_same_weights,
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
def half_precision():
    keras.config.set_dtype_policy("mixed_float16")
    yield
    keras.config.set_dtype_policy("float32")


@pytest.mark.usefixtures("half_precision")
def test_loss_scaling_does_not_scale_the_divergence():
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


@pytest.mark.usefixtures("compiled_functions")
def test_steps_per_execution_do_not_change_the_figures():
    options = {"run_eagerly": False, "jit_compile": False, "steps_per_execution": 3}
    model, twin = twins(regression, **options)
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
        history = model.fit(X, Y, verbose=0).history
        return history["loss"], model.predictive(X, seed=3).sample(2)

    (first, draws), (second, same), (other, _) = map(program, (7, 7, 8))
    assert first == second != other
    np.testing.assert_array_equal(draws, same)
