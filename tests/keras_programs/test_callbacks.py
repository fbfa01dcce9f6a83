"""Callbacks of Keras, loss scaling, and programs that give the same figures again."""

import keras
import numpy as np
import pytest

import tfbbb
from tests.keras_programs.twins import assert_same_weights, squared_error

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3)).astype("float32")
Y = X[:, :1] - 0.3 * RANDOM.normal(size=(40, 1)).astype("float32")
callbacks = keras.callbacks


def bayesian():
    inputs = keras.Input((3,))
    hidden = tfbbb.layers.DenseVariational(4, "tanh", seed=1)(inputs)
    outputs = tfbbb.layers.DenseVariational(1, seed=2)(hidden)
    model = tfbbb.BayesianModel(inputs, outputs)
    model.compile(keras.optimizers.SGD(0.02), run_eagerly=True)
    return model


def test_predictions_while_training_do_not_change_training():
    class Watch(callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.predictive(X[:5], num_samples=4)

    def trained(watched):
        keras.utils.set_random_seed(3)
        model = bayesian()
        model.fit(X, Y, epochs=2, callbacks=watched, verbose=0)
        return model

    assert_same_weights(trained([Watch()]), trained([]), rtol=0, atol=0)


def test_callback_may_anneal_the_given_kl_weight():
    class Anneal(callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            for layer in self.model.variational_layers:
                layer.kl_weight.assign((epoch + 1) / 40)

    inputs = keras.Input((3,))
    outputs = tfbbb.layers.DenseVariational(1, kl_weight=1 / 40)(inputs)
    model = tfbbb.BayesianModel(inputs, outputs)
    model.compile(keras.optimizers.SGD(0.01), run_eagerly=True)
    history = model.fit(X, Y, epochs=3, callbacks=[Anneal()], verbose=0).history
    added = np.subtract(history["loss"], history["nll"])
    np.testing.assert_allclose(
        added, np.multiply(history["kl"], [1 / 40, 2 / 40, 3 / 40]), rtol=1e-4
    )


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
    expected = np.add(history["nll"], np.divide(history["kl"], 40))
    np.testing.assert_allclose(history["loss"], expected, rtol=1e-3)


def test_seed_decides_training_and_prediction():
    def program(seed):
        keras.utils.set_random_seed(seed)
        model = bayesian()
        history = model.fit(X, Y, verbose=0).history
        return history["loss"], model.predictive(X, seed=3).sample(2)

    (first, draws), (second, same), (other, _) = map(program, (7, 7, 8))
    assert first == second != other
    np.testing.assert_array_equal(draws, same)
