"""What a program changes between two predictions is in the second one."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tfbbb.prediction.structure import Structure

X = np.random.default_rng(0).normal(size=(6, 2)).astype("float32")
TEXTS = np.array([["a"], ["b"], ["c"], ["a"], ["d"], ["b"]])
LIKELIHOOD = tfbbb.likelihoods.Normal(scale=0.5)


class Scale(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.factors = np.array([2.0, 3.0], "float32")

    def call(self, inputs):
        return inputs * self.factors


def normalization():
    layer = keras.layers.Normalization()
    layer.adapt(X)
    return layer, lambda: layer.adapt(5 + 3 * X)


def string_lookup():
    layer = keras.layers.StringLookup(output_mode="multi_hot")
    layer.set_vocabulary(["a", "b"])
    return layer, lambda: layer.set_vocabulary(["c", "a"])


def activation():
    layer = keras.layers.Dense(2, activation="tanh")
    return layer, lambda: setattr(layer, "activation", keras.activations.relu)


def certain_model(layer, x):
    """Returns a network whose variational layer has almost no variance."""
    inputs = keras.Input(x.shape[1:], dtype="string" if x is TEXTS else None)
    last = tfbbb.layers.DenseVariational(1, kl_weight=1.0)
    model = keras.Model(inputs, last(layer(inputs)))
    for weight in last.variational_weights:
        variable = weight.variables["log_scale"]
        variable.assign(tf.fill(variable.shape, -30.0))
    return model


@pytest.mark.parametrize("change", [normalization, string_lookup, activation])
def test_a_prediction_has_what_changed_since_the_last(change):
    layer, apply = change()
    x = TEXTS if change is string_lookup else X
    model = certain_model(layer, x)
    before = tfbbb.predictive(model, x, likelihood=LIKELIHOOD, num_samples=2).mean
    apply()
    found = tfbbb.predictive(model, x, likelihood=LIKELIHOOD, num_samples=2).mean
    rows = tf.constant(x)
    np.testing.assert_allclose(found, model(rows), rtol=1e-4, atol=1e-4)
    assert np.abs(found - before).max() > 0.01


def test_training_and_saving_change_no_constant(tmp_path):
    layer, _ = normalization()
    inputs = keras.Input((2,))
    hidden = Scale()(layer(inputs))
    model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(hidden))
    model.compile("adam")
    model.predictive(X)
    structure = Structure.of(model)
    model.fit(X, X[:, :1], validation_split=0.5, verbose=0)
    model.predict(X, verbose=0)
    model.save(tmp_path / "model.keras")
    model.predictive(X).quantile(0.5)
    assert Structure.of(model) is structure
