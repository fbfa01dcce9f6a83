"""The recurrent layers, each beside its Keras layer."""

import keras
import numpy as np
import tensorflow as tf

from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import GRUVariational, LSTMVariational, SimpleRNNVariational

GENERATOR = np.random.default_rng(0)
SEQUENCES = GENERATOR.normal(size=(3, 4, 2)).astype("float32")
MASK = np.array([[1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 1, 0]], bool)

# Ours, Keras', and the arguments that choose an equation of its own.
KINDS = {
    "simple_rnn": (SimpleRNNVariational, keras.layers.SimpleRNN, {}),
    "lstm": (LSTMVariational, keras.layers.LSTM, {}),
    "gru": (GRUVariational, keras.layers.GRU, {}),
    "gru_reset_before": (GRUVariational, keras.layers.GRU, {"reset_after": False}),
}


def variational(kind, units=3, scale=0.5, **kwargs):
    """Returns a layer whose posterior has standard deviations of `scale` or so."""
    layer, _, arguments = KINDS[kind]
    return layer(
        units,
        posterior=MeanFieldNormal(scale),
        bias_posterior=MeanFieldNormal(scale),
        bias_initializer=keras.initializers.RandomNormal(stddev=0.5),
        **{"kl_weight": 0.1, **arguments, **kwargs},
    )


def certain(kind, **kwargs):
    """Returns a layer whose weights are their means, but for rounding."""
    return variational(kind, scale=1e-9, **kwargs)


def deterministic(kind, layer, weights=None, **kwargs):
    """Returns the Keras layer with other weights, or a layer's posterior means."""
    _, keras_layer, arguments = KINDS[kind]
    twin = keras_layer(layer.units, **arguments, **kwargs)
    twin.build((None, None, layer.kernel.shape[0]))
    if weights is None:
        weights = [weight.mean for weight in layer.variational_weights]
    twin.set_weights([np.asarray(weight) for weight in weights])
    return twin


def with_drawn_weights(kind, layer, **kwargs):
    """Returns the Keras layer as a function that draws its weights at every call."""
    twin = deterministic(kind, layer, **kwargs)

    def call(x):
        weights = [
            w.mean + w.stddev * tf.random.normal(w.shape)
            for w in layer.variational_weights
        ]
        return twin.stateless_call(weights, twin.non_trainable_variables, x)[0]

    return call
