"""Callbacks of Keras, and training that stops, resumes and is watched."""

import keras
import numpy as np

import tfbbb
from tests.keras_programs.twins import assert_same_weights, regression, twins

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


def held_out_nll(model):
    return model.evaluate(X[30:], Y[30:], verbose=0, return_dict=True)["nll"]


def test_early_stopping_restores_the_best_weights():
    model, _ = twins(regression, rate=0.9)
    stop = callbacks.EarlyStopping(
        "val_nll", mode="min", patience=3, restore_best_weights=True
    )
    data = {"validation_data": (X[30:], Y[30:]), "shuffle": False}
    history = model.fit(
        X[:30], -Y[:30], epochs=12, callbacks=[stop], verbose=0, **data
    ).history
    assert len(history["val_nll"]) < 12
    np.testing.assert_allclose(held_out_nll(model), min(history["val_nll"]), rtol=1e-4)


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
