"""Longer padding of a sequence changes no loss, step, divergence or prediction."""

import keras
import numpy as np
import pytest

import tfbbb
from tfbbb import layers

RANDOM = np.random.default_rng(0)
LENGTHS = np.array([2, 5, 3, 6, 1, 4])
REAL = np.arange(6) < LENGTHS[:, None]
TOKENS = np.where(REAL, RANDOM.integers(1, 7, (6, 6)), 0)
CLASSES = np.where(REAL, TOKENS % 3, 0)
PADDING = [(0, 0), (0, 5)]


def recurrent(kind):
    return lambda hidden, ends: kind(4, return_sequences=not ends)(hidden)


def both_ways(hidden, ends):
    layer = layers.GRUVariational(3, return_sequences=not ends)
    return keras.layers.Bidirectional(layer)(hidden)


def attended(hidden, ends):
    layer = layers.MultiHeadAttentionVariational(2, 3, estimator="weight")
    attention = layer(hidden, hidden)
    return keras.layers.GlobalAveragePooling1D()(attention) if ends else attention


def embedded(hidden, ends):
    return keras.layers.GlobalAveragePooling1D()(hidden) if ends else hidden


KINDS = {
    "simple_rnn": recurrent(layers.SimpleRNNVariational),
    "lstm": recurrent(layers.LSTMVariational),
    "gru": recurrent(layers.GRUVariational),
    "bidirectional": both_ways,
    "attention": attended,
    "embedding": embedded,
}


def trained(kind, tokens, classes, *, ends):
    """Returns a model after one step of plain gradient descent, and its figures."""
    keras.utils.set_random_seed(0)
    inputs = keras.Input((None,), dtype="int32")
    embedding = layers.EmbeddingVariational(7, 4, mask_zero=True, estimator="weight")
    hidden = KINDS[kind](embedding(inputs), ends)
    # Noise that does not depend on the number of steps.
    outputs = layers.DenseVariational(3, estimator="weight")(hidden)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    # To trace the one step takes longer than to run it.
    model.compile(keras.optimizers.SGD(1.0), run_eagerly=True)
    history = model.fit(tokens, classes, batch_size=6, shuffle=False, verbose=0)
    return model, history.history


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kind", "ends"), [(kind, index % 2 == 0) for index, kind in enumerate(KINDS)]
)
def test_longer_padding_changes_nothing(kind, ends):
    classes = LENGTHS % 3 if ends else CLASSES
    wider = classes if ends else np.pad(classes, PADDING)
    model, figures = trained(kind, TOKENS, classes, ends=ends)
    padded, same = trained(kind, np.pad(TOKENS, PADDING), wider, ends=ends)
    for name in ("loss", "nll", "kl"):
        np.testing.assert_allclose(same[name], figures[name], rtol=1e-5, err_msg=name)
    # One step of plain gradient descent: equal weights are equal gradients.
    for ours, theirs in zip(
        model.trainable_variables, padded.trainable_variables, strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    longer = model.predictive(np.pad(TOKENS, PADDING), method="weight").probabilities
    expected = model.predictive(TOKENS, method="weight").probabilities
    if ends:
        np.testing.assert_allclose(longer, expected, rtol=1e-4, atol=1e-6)
    else:
        np.testing.assert_allclose(longer[:, :6][REAL], expected[REAL], rtol=1e-4)
