"""Recurrence and attention in a model that is trained, saved and exported."""

import keras
import numpy as np
import tensorflow as tf

import tfbbb
from tests.posterior_draws import engine_draws
from tfbbb.layers import (
    DenseVariational,
    LSTMVariational,
    MultiHeadAttentionVariational,
)


def test_ensemble_of_sequence_models_trains_and_is_saved_and_exported(tmp_path):
    keras.utils.set_random_seed(0)
    inputs = keras.Input((8,))
    sequence = keras.layers.Reshape((4, 2))(inputs)
    attended = MultiHeadAttentionVariational(1, 2)(sequence, sequence)
    outputs = DenseVariational(1)(LSTMVariational(3)(attended))
    model = tfbbb.BayesianModel(inputs, outputs, likelihood="normal", members=2)
    model.compile("adam")
    x = np.random.default_rng(0).normal(size=(40, 8)).astype("float32")
    history = model.fit(x, x[:, :1], epochs=2, verbose=0).history
    assert np.isfinite(history["loss"]).all()

    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    live, again = (engine_draws(m, x[:3], "weight", 4) for m in (model, loaded))
    np.testing.assert_allclose(again, live, rtol=1e-5)

    model.export_predictive(tmp_path / "exported")
    served = tf.saved_model.load(tmp_path / "exported").signatures["predict"](
        inputs=tf.constant(x[:3]), num_samples=tf.constant(20), seed=tf.constant(5)
    )
    live = model.predictive(x[:3], num_samples=20, method="local", seed=5)
    np.testing.assert_allclose(served["mean"], live.mean, rtol=1e-4)
