"""Training loops and steps of the user's own, and batches trained by hand."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tests.keras_programs.twins import (
    CONSTANT,
    POINT,
    assert_same_weights,
    copy_weights,
    regression,
    twins,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3)).astype("float32")
Y = X[:, :1] - 0.3 * RANDOM.normal(size=(40, 1)).astype("float32")


def plain(kl_weight=1 / 40, **options):
    """Returns a network with posteriors that is a plain Keras model."""
    return keras.Sequential(
        [
            keras.Input((3,)),
            tfbbb.layers.DenseVariational(4, "tanh", kl_weight=kl_weight, **options),
            tfbbb.layers.DenseVariational(1, kl_weight=kl_weight, **options),
        ]
    )


def kl_of(layers):
    """Returns the divergence of mean-field normals from the default priors, in nats."""
    total = 0.0
    for layer in layers:
        for weight, prior in ((layer.kernel, 0.5), (layer.bias, 1.0)):
            mean, stddev = (
                np.asarray(weight.mean, float),
                np.asarray(weight.stddev, float),
            )
            terms = (mean**2 + stddev**2) / prior**2 - 1 - 2 * np.log(stddev / prior)
            total += 0.5 * terms.sum()
    return total


def gradient_step(model, optimizer, x, y):
    with tf.GradientTape() as tape:
        outputs = model(x, training=True)
        nll = tf.reduce_mean(tf.reduce_sum((outputs - y) ** 2, axis=-1))
        loss = nll + sum(model.losses)
    variables = model.trainable_variables
    optimizer.apply(tape.gradient(loss, variables), variables)
    return loss, nll


@pytest.mark.usefixtures("compiled_functions")
@pytest.mark.parametrize("compile", [lambda step: step, tf.function])
def test_losses_of_a_loop_are_the_divergence_once_per_step(compile):
    model, optimizer = plain(), keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)
    step = compile(lambda x, y: gradient_step(model, optimizer, x, y))
    for _ in range(3):
        expected = kl_of(model.layers) / 40
        loss, nll = step(X, Y)
        np.testing.assert_allclose(loss - nll, expected, rtol=1e-4)


def test_loop_with_a_tape_trains_as_fit_of_the_twin():
    model, twin = plain(**POINT), keras.Model(*regression(keras.layers))
    copy_weights(twin, model)
    twin.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=True)
    optimizer = keras.optimizers.SGD(0.1)
    for _ in range(2):
        for i in range(0, 40, 8):
            gradient_step(model, optimizer, X[i : i + 8], Y[i : i + 8])
    twin.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    assert_same_weights(model, twin)


def test_train_step_of_the_guide_reports_what_fit_reports():
    class OfTheGuide(tfbbb.BayesianModel):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=y_pred)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply(gradients, self.trainable_variables)
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, y_pred)
            return {metric.name: metric.result() for metric in self.metrics}

    figures = []
    for cls in (OfTheGuide, tfbbb.BayesianModel):
        keras.utils.set_random_seed(1)
        inputs = keras.Input((3,))
        layer = tfbbb.layers.DenseVariational(1, seed=1)
        model = cls(inputs, layer(inputs), likelihood="normal", members=2)
        model.compile(keras.optimizers.SGD(0.1), metrics=["mae"], run_eagerly=True)
        history = model.fit(X, 50 + 10 * Y, batch_size=20, shuffle=False, verbose=0)
        figures.append(history.history)
    assert figures[0].keys() == figures[1].keys() >= {"nll", "mae"}
    for name, values in figures[0].items():
        np.testing.assert_allclose(values, figures[1][name], rtol=1e-5)


def test_batches_trained_by_hand_are_those_of_fit():
    model, twin = twins(regression)
    model.fit(X[:8], Y[:8], verbose=0)
    twin.fit(X[:8], Y[:8], verbose=0)
    for i in range(8, 40, 8):
        ours = model.train_on_batch(X[i : i + 8], Y[i : i + 8], return_dict=True)
        theirs = twin.train_on_batch(X[i : i + 8], Y[i : i + 8], return_dict=True)
        np.testing.assert_allclose(ours["loss"] - CONSTANT, theirs["loss"], rtol=1e-3)
    assert_same_weights(model, twin)


def test_accumulated_divergence_keeps_its_weight():
    gradients = {}
    for steps in (1, 4):
        keras.utils.set_random_seed(1)
        model = plain()
        for layer in model.layers:
            for weight in layer.variational_weights:
                weight.variables["log_scale"].assign(np.full(weight.shape, -12.0))
        start = model.get_weights()
        optimizer = keras.optimizers.SGD(
            1.0, gradient_accumulation_steps=steps if steps > 1 else None
        )
        model.compile(optimizer, "mse", run_eagerly=True)
        model.fit(X, Y, batch_size=40 // steps, shuffle=False, verbose=0)
        gradients[steps] = [
            b - a for a, b in zip(start, model.get_weights(), strict=True)
        ]
    for one, four in zip(gradients[1], gradients[4], strict=True):
        np.testing.assert_allclose(one, four, rtol=2e-2, atol=2e-3)
