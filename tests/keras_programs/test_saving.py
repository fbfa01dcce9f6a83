"""Files and copies of models and weights, and models that leave Keras."""

import keras
import numpy as np
import tensorflow as tf

import tfbbb
from tests.keras_programs.twins import assert_same_weights, regression, twins

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3)).astype("float32")
Y = 10 * X[:, :1] - 3 * RANDOM.normal(size=(40, 1)).astype("float32")


def bayesian():
    inputs = keras.Input((3,))
    hidden = tfbbb.layers.DenseVariational(4, "tanh")(inputs)
    model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(hidden))
    model.compile(keras.optimizers.Adam(0.02), run_eagerly=True)
    return model


def test_loaded_model_trains_on_as_if_never_saved(tmp_path):
    model, _ = twins(regression, optimizer=lambda: keras.optimizers.Adam(0.05))
    model.fit(X, Y, epochs=2, shuffle=False, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    loaded.compile(loaded.optimizer, run_eagerly=True)
    for each in (model, loaded):
        each.fit(X, Y, epochs=2, shuffle=False, verbose=0)
    assert_same_weights(loaded, model, rtol=1e-6)


def test_checkpoint_of_tensorflow_restores_a_new_model(tmp_path):
    model, other = bayesian(), bayesian()
    model.fit(X, Y, verbose=0)
    saved = tf.train.Checkpoint(model=model).save(tmp_path / "checkpoint")
    tf.train.Checkpoint(model=other).restore(saved).expect_partial()
    ours, theirs = other.predictive(X), model.predictive(X)
    np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-5)
    np.testing.assert_allclose(ours.variance, theirs.variance, rtol=1e-4)
    assert other.num_rows == 40
