"""The moments as tensors: equal to those of `predictive`, with its derivatives."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb

X = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")


def network(outputs=1, **options):
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    hidden = tfbbb.layers.DenseVariational(6, "tanh")(inputs)
    last = tfbbb.layers.DenseVariational(outputs)(hidden)
    model = tfbbb.BayesianModel(inputs, last, **options)
    for weight in model.variational_weights:
        scale = weight.variables["log_scale"]
        scale.assign(tf.fill(scale.shape, -1.5))
    return model


@pytest.mark.parametrize(
    ("method", "likelihood"),
    [("local", "normal"), ("weight", "categorical"), ("linearised", "normal")],
)
def test_moments_are_those_of_predictive(method, likelihood):
    outputs = 3 if likelihood == "categorical" else 1
    model = network(outputs, likelihood=likelihood)
    found = tfbbb.predictive_tensors(model, X, method=method, num_samples=20, seed=2)
    answer = model.predictive(X, method=method, num_samples=20, seed=2)
    for name, values in found.items():
        expected = getattr(answer, name)
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-6)


def test_gradients_are_those_of_finite_differences():
    model = network()
    moments = tf.function(lambda x: tfbbb.predictive_tensors(model, x, num_samples=20))
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        values = moments(x)
    step = 1e-2
    for column in range(3):
        moved = step * np.eye(3, dtype="float32")[column]
        ends = [
            model.predictive(x, method="local", num_samples=20)
            for x in (X + moved, X - moved)
        ]
        for name in ("mean", "epistemic", "variance"):
            above, below = (getattr(end, name)[:, 0] for end in ends)
            gradient = tape.gradient(values[name], x).numpy()[:, column]
            # The third derivative times the square of the step, single precision.
            np.testing.assert_allclose(
                gradient, (above - below) / (2 * step), rtol=0.01, atol=2e-3
            )


def test_answers_that_are_changed_later_are_refused():
    model = network()
    many = np.tile(X, (12, 1))
    model.recalibrate(many, many[:, :1], method="isotonic_pit")
    with pytest.raises(ValueError, match=r"no derivatives.*Received: recalibration="):
        tfbbb.predictive_tensors(model, X)
