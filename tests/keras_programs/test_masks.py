"""Padded sequences, masks and ragged lengths."""

import keras
import numpy as np

import tfbbb
from tests.keras_programs.twins import CONSTANT, assert_same_weights, twins

RANDOM = np.random.default_rng(0)
LENGTHS = np.array([2, 5, 3, 6, 1, 4])
REAL = np.arange(6) < LENGTHS[:, None]
TOKENS = np.where(REAL, RANDOM.integers(1, 7, (6, 6)), 0)
CLASSES = np.where(REAL, TOKENS % 3, 0)
SIGNAL = np.where(REAL[..., None], RANDOM.normal(size=(6, 6, 2)), 0).astype("float32")
TARGETS = np.where(REAL[..., None], SIGNAL[..., :1] + 0.5, 0).astype("float32")


def tagger(layers):
    inputs = keras.Input((None,), dtype="int32")
    hidden = layers.Embedding(7, 4, mask_zero=True)(inputs)
    hidden = layers.Dense(5, "tanh")(hidden)
    return inputs, layers.Dense(3)(hidden)


def tracker(layers):
    inputs = keras.Input((6, 2))
    hidden = layers.Masking()(inputs)
    return inputs, layers.Dense(1)(layers.Dense(4, "tanh")(hidden))


def evaluated(model, *data):
    return model.evaluate(*data, verbose=0, return_dict=True)


def test_masked_numbers_do_not_count():
    model, twin = twins(tracker, metrics=["mae"])
    model.fit(SIGNAL, TARGETS, batch_size=6, verbose=0)
    twin.set_weights([w.numpy() for w in model.trainable_variables])
    ours, theirs = evaluated(model, SIGNAL, TARGETS), evaluated(twin, SIGNAL, TARGETS)
    # Keras averages over steps; we sum over the steps of a row, and average over rows.
    per_step = ours["nll"] * len(SIGNAL) / LENGTHS.sum() - CONSTANT
    np.testing.assert_allclose(per_step, theirs["loss"], rtol=1e-5)
    np.testing.assert_allclose(ours["mae"], theirs["mae"], rtol=1e-5)


def test_both_directions_start_at_real_steps():
    def reader(layers):
        inputs = keras.Input((6,), dtype="int32")
        hidden = layers.Embedding(7, 4, mask_zero=True)(inputs)
        recurrence = layers.GRU(3, return_sequences=True, unroll=True)
        hidden = layers.Bidirectional(recurrence)(hidden)
        return inputs, layers.TimeDistributed(layers.Dense(3))(hidden)

    model, twin = twins(reader, "categorical", metrics=["accuracy"])
    model.fit(TOKENS, CLASSES, batch_size=6, verbose=0)
    # The gradient of a mean over steps is so many times smaller.
    twin.optimizer.learning_rate = 0.1 * LENGTHS.sum() / len(TOKENS)
    twin.fit(TOKENS, CLASSES, batch_size=6, verbose=0)
    assert_same_weights(model, twin)


def test_padding_does_not_shift_the_units_of_targets():
    inputs = keras.Input((6, 2))
    hidden = tfbbb.layers.DenseVariational(3, "tanh")(keras.layers.Masking()(inputs))
    model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(hidden))
    model.compile(run_eagerly=True)
    model.fit(SIGNAL, np.where(REAL[..., None], 50 + TARGETS, -999.0), verbose=0)
    real = 50 + TARGETS[REAL]
    np.testing.assert_allclose(model.likelihood.target_shift, real.mean(0), rtol=1e-5)
    np.testing.assert_allclose(model.likelihood.target_scale, real.std(0), rtol=1e-3)


def test_row_of_padding_alone_does_no_harm():
    model, _ = twins(tagger, "categorical")
    x, y = (
        np.vstack([TOKENS, np.zeros((2, 6), int)]),
        np.vstack([CLASSES, np.zeros((2, 6), int)]),
    )
    history = model.fit(x, y, batch_size=4, shuffle=False, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert all(np.isfinite(w).all() for w in model.get_weights())
