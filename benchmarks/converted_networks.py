"""Twenty ordinary networks with small data, which `conversion.py` converts.

The networks are written as users of Keras write them: they end in probabilities or in
the mean, and `loss` is a loss of Keras.
"""

import functools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import layers as L
from sklearn.datasets import load_digits

LOSSES = {
    "categorical": "sparse_categorical_crossentropy",
    "bernoulli": "binary_crossentropy",
    "normal": "mse",
}


@dataclass(frozen=True)
class Network:
    """A network of Keras, and its data.

    Attributes:
        make: Returns the network, untrained.
        data: Returns inputs, an array or a list of arrays, and targets, an array or a
            list of one array for each output.
        likelihoods: The likelihood that its loss equals, one for each output.
    """

    make: Callable[[], keras.Model]
    data: Callable[[], tuple[Any, Any]]
    likelihoods: tuple[str, ...] = ("categorical",)

    @property
    def losses(self) -> Any:
        """Keras' name of the loss, or one for each output."""
        found = [LOSSES[name] for name in self.likelihoods]
        return found[0] if len(found) == 1 else found


@functools.cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Returns the images [1797, 8, 8] of scikit-learn's digits, and their classes."""
    bunch = load_digits()
    return (bunch.images / 16.0).astype("float32"), bunch.target


def digits_and_parity() -> tuple[np.ndarray, list[np.ndarray]]:
    """Returns the digits with two targets: the class, and whether the digit is odd."""
    x, y = digits()
    return x, [y, (y % 2)[:, np.newaxis].astype("float32")]


def pixels() -> tuple[np.ndarray, np.ndarray]:
    """Returns noisy digits, and which of their pixels are ink, [rows, 8, 8, 1]."""
    x, _ = digits()
    noise = np.random.default_rng(0).normal(scale=0.3, size=x.shape)
    ink = (x > 0.5)[..., np.newaxis]
    return (x + noise).astype("float32"), ink.astype("float32")


def flat_digits() -> tuple[np.ndarray, np.ndarray]:
    """Returns the pixels of the digits that vary [1797, 54], as inputs and targets."""
    x = digits()[0].reshape(-1, 64)
    x = x[:, x.std(axis=0) > 0.05]
    return x, x


def large_digits() -> tuple[np.ndarray, np.ndarray]:
    """Returns the digits as images [1797, 32, 32, 3]."""
    x, y = digits()
    return np.repeat(np.kron(x, np.ones((4, 4), "float32"))[..., None], 3, -1), y


@functools.cache
def waves() -> tuple[np.ndarray, np.ndarray]:
    """Returns noisy series [1800, 32, 1], and which of four shapes each one has."""
    random = np.random.default_rng(1)
    y = random.integers(4, size=1800)
    phase = random.uniform(0, 2 * np.pi, (1800, 1))
    angle = random.uniform(0.3, 0.9, (1800, 1)) * np.arange(32) + phase
    shapes = [
        np.sin(angle),
        np.sign(np.sin(angle)),
        2 / np.pi * np.arcsin(np.sin(angle)),
        angle / np.pi % 2 - 1,
    ]
    x = np.choose(y[:, np.newaxis], shapes) + random.normal(scale=0.3, size=(1800, 32))
    return x[..., np.newaxis].astype("float32"), y


@functools.cache
def series() -> tuple[np.ndarray, np.ndarray]:
    """Returns windows [1800, 24, 1] of an autoregressive season, and the next value."""
    random = np.random.default_rng(2)
    values = np.zeros(1900)
    for t in range(2, 1900):
        season = np.sin(2 * np.pi * t / 24)
        past = 0.9 * values[t - 1] - 0.4 * values[t - 2]
        values[t] = np.tanh(past) + season + random.normal(scale=0.3)
    windows = np.lib.stride_tricks.sliding_window_view(values[50:], 25)[:1800]
    windows = windows.astype("float32")
    return windows[:, :-1, np.newaxis], windows[:, -1:]


@functools.cache
def texts() -> tuple[np.ndarray, np.ndarray]:
    """Returns texts of 5 to 20 of 300 words [1800, 20], and which of 5 topics each has.

    0 is no word.
    """
    random = np.random.default_rng(3)
    topics = random.dirichlet(np.full(299, 0.15), size=5)
    common = random.dirichlet(np.ones(299))
    y = random.integers(5, size=1800)
    x = np.zeros((1800, 20), "int32")
    for row, topic in enumerate(y):
        words = random.integers(5, 21)
        share = 0.25 * topics[topic] + 0.75 * common
        x[row, :words] = 1 + random.choice(299, words, p=share)
    return x, y


@functools.cache
def ratings() -> tuple[list[np.ndarray], np.ndarray]:
    """Returns users and items, [1800, 1] each, and whether the user likes the item."""
    random = np.random.default_rng(4)
    users, items = random.normal(size=(60, 3)), random.normal(size=(40, 3))
    who, what = random.integers(60, size=1800), random.integers(40, size=1800)
    logits = 1.5 * (users[who] * items[what]).sum(axis=1)
    likes = random.random(1800) < 1 / (1 + np.exp(-logits))
    return [who[:, None], what[:, None]], likes[:, None].astype("float32")


def mlp() -> keras.Model:
    """Returns two hidden layers of 64."""
    return keras.Sequential(
        [
            keras.Input((8, 8)),
            L.Flatten(),
            L.Dense(64, "relu"),
            L.Dense(64, "relu"),
            L.Dense(10, "softmax"),
        ]
    )


def lenet() -> keras.Model:
    """Returns two convolutions with pooling, and two dense layers."""
    return keras.Sequential(
        [
            keras.Input((8, 8)),
            L.Reshape((8, 8, 1)),
            L.Conv2D(16, 3, padding="same", activation="relu"),
            L.MaxPooling2D(),
            L.Conv2D(32, 3, padding="same", activation="relu"),
            L.MaxPooling2D(),
            L.Flatten(),
            L.Dense(64, "relu"),
            L.Dense(10, "softmax"),
        ]
    )


def resnet() -> keras.Model:
    """Returns a first convolution and three residual blocks: ResNet-8."""
    inputs = keras.Input((8, 8))
    hidden = L.Conv2D(8, 3, padding="same", use_bias=False)(
        L.Reshape((8, 8, 1))(inputs)
    )
    hidden = L.Activation("relu")(L.BatchNormalization()(hidden))
    for filters, strides in ((8, 1), (16, 2), (32, 2)):
        options = {"padding": "same", "use_bias": False}
        block = L.Conv2D(filters, 3, strides=strides, **options)(hidden)
        block = L.Activation("relu")(L.BatchNormalization()(block))
        block = L.BatchNormalization()(L.Conv2D(filters, 3, **options)(block))
        if strides > 1:
            hidden = L.Conv2D(filters, 1, strides=strides, **options)(hidden)
        hidden = L.Activation("relu")(L.Add()([hidden, block]))
    outputs = L.Dense(10, "softmax")(L.GlobalAveragePooling2D()(hidden))
    return keras.Model(inputs, outputs)


def mobilenet() -> keras.Model:
    """Returns three depthwise separable blocks."""
    inputs = keras.Input((8, 8))
    hidden = L.Conv2D(16, 3, padding="same", use_bias=False)(
        L.Reshape((8, 8, 1))(inputs)
    )
    hidden = L.ReLU(6.0)(L.BatchNormalization()(hidden))
    for filters, strides in ((16, 1), (32, 2), (32, 1)):
        hidden = L.DepthwiseConv2D(3, strides=strides, padding="same", use_bias=False)(
            hidden
        )
        hidden = L.ReLU(6.0)(L.BatchNormalization()(hidden))
        hidden = L.Conv2D(filters, 1, use_bias=False)(hidden)
        hidden = L.ReLU(6.0)(L.BatchNormalization()(hidden))
    outputs = L.Dense(10, "softmax")(L.GlobalAveragePooling2D()(hidden))
    return keras.Model(inputs, outputs)


def unet() -> keras.Model:
    """Returns two levels down and up with a skip connection, a logit of each pixel."""
    inputs = keras.Input((8, 8))
    options = {"padding": "same", "activation": "relu"}
    top = L.Conv2D(8, 3, **options)(L.Reshape((8, 8, 1))(inputs))
    low = L.Conv2D(16, 3, **options)(L.MaxPooling2D()(top))
    up = L.Conv2DTranspose(8, 2, strides=2, **options)(low)
    hidden = L.Conv2D(8, 3, **options)(L.Concatenate()([top, up]))
    return keras.Model(inputs, L.Conv2D(1, 1, activation="sigmoid")(hidden))


def convolution_1d() -> keras.Model:
    """Returns three convolutions over a series."""
    return keras.Sequential(
        [
            keras.Input((32, 1)),
            L.Conv1D(16, 5, activation="relu"),
            L.MaxPooling1D(),
            L.Conv1D(32, 5, activation="relu"),
            L.Conv1D(32, 3, activation="relu"),
            L.GlobalAveragePooling1D(),
            L.Dense(4, "softmax"),
        ]
    )


def lstm() -> keras.Model:
    """Returns an LSTM that forecasts the next value."""
    return keras.Sequential([keras.Input((24, 1)), L.LSTM(16), L.Dense(1)])


def gru() -> keras.Model:
    """Returns a GRU that forecasts the next value."""
    return keras.Sequential([keras.Input((24, 1)), L.GRU(16), L.Dense(1)])


def bidirectional() -> keras.Model:
    """Returns an LSTM over the rows of an image, in both directions."""
    return keras.Sequential(
        [keras.Input((8, 8)), L.Bidirectional(L.LSTM(32)), L.Dense(10, "softmax")]
    )


def transformer() -> keras.Model:
    """Returns a transformer encoder over the rows of an image."""
    inputs = keras.Input((8, 8))
    hidden = L.Dense(32)(inputs)
    hidden = L.Add()([hidden, L.MultiHeadAttention(4, 8)(hidden, hidden)])
    hidden = L.LayerNormalization()(hidden)
    hidden = L.Add()([hidden, L.Dense(32)(L.Dense(64, "relu")(hidden))])
    hidden = L.Flatten()(L.LayerNormalization()(hidden))
    return keras.Model(inputs, L.Dense(10, "softmax")(hidden))


def text_convolution() -> keras.Model:
    """Returns embeddings with a mask, a convolution, and a mean over the words."""
    inputs = keras.Input((20,), dtype="int32")
    hidden = L.Embedding(300, 16, mask_zero=True)(inputs)
    # Keras' convolutions lose the mask.
    hidden = L.Conv1D(32, 3, padding="same", activation="relu")(hidden)
    hidden = L.GlobalAveragePooling1D()(hidden, mask=keras.ops.not_equal(inputs, 0))
    return keras.Model(inputs, L.Dense(5, "softmax")(hidden))


def autoencoder() -> keras.Model:
    """Returns a bottleneck of 16."""
    return keras.Sequential(
        [
            keras.Input((flat_digits()[0].shape[1],)),
            L.Dense(48, "relu"),
            L.Dense(16),
            L.Dense(48, "relu"),
            L.Dense(flat_digits()[0].shape[1]),
        ]
    )


def two_tower() -> keras.Model:
    """Returns the embeddings of users and items, each with a dense layer, and a dot."""
    user, item = keras.Input((1,), dtype="int32"), keras.Input((1,), dtype="int32")
    towers = [
        L.Dense(8)(L.Flatten()(L.Embedding(number, 8)(ids)))
        for number, ids in ((60, user), (40, item))
    ]
    return keras.Model([user, item], L.Dense(1, "sigmoid")(L.Dot(1)(towers)))


def multi_output() -> keras.Model:
    """Returns a network with two heads: the class of a digit, and its parity."""
    inputs = keras.Input((8, 8))
    hidden = L.Dense(64, "relu")(L.Flatten()(inputs))
    return keras.Model(
        inputs, [L.Dense(10, "softmax")(hidden), L.Dense(1, "sigmoid")(hidden)]
    )


def mixed_precision() -> keras.Model:
    """Returns a convolutional network that computes in bfloat16."""
    policy = "mixed_bfloat16"
    return keras.Sequential(
        [
            keras.Input((8, 8)),
            L.Reshape((8, 8, 1)),
            L.Conv2D(16, 3, activation="relu", dtype=policy),
            L.Flatten(),
            L.Dense(64, "relu", dtype=policy),
            L.Dense(10, "softmax", dtype="float32"),
        ]
    )


def batch_normalized() -> keras.Model:
    """Returns two hidden layers with batch normalisation."""
    return keras.Sequential(
        [
            keras.Input((8, 8)),
            L.Flatten(),
            L.Dense(64),
            L.BatchNormalization(),
            L.ReLU(),
            L.Dense(64),
            L.BatchNormalization(),
            L.ReLU(),
            L.Dense(10, "softmax"),
        ]
    )


def dropout() -> keras.Model:
    """Returns two hidden layers with dropout."""
    return keras.Sequential(
        [
            keras.Input((8, 8)),
            L.Flatten(),
            L.Dense(128, "relu"),
            L.Dropout(0.3),
            L.Dense(128, "relu"),
            L.Dropout(0.3),
            L.Dense(10, "softmax"),
        ]
    )


def lora() -> keras.Model:
    """Returns a network whose hidden layers have low-rank adapters."""
    network = mlp()
    for layer in network.layers[1:3]:
        layer.enable_lora(8)
    return network


def application() -> keras.Model:
    """Returns a MobileNet of `keras.applications`."""
    return keras.applications.MobileNet(
        (32, 32, 3), alpha=0.25, weights=None, classes=10
    )


def loaded() -> keras.Model:
    """Returns a convolutional network that was saved and loaded."""
    network = keras.Sequential(
        [
            keras.Input((8, 8)),
            L.Reshape((8, 8, 1)),
            L.SeparableConv2D(16, 3, activation="relu"),
            L.SeparableConv2D(32, 3, activation="relu"),
            L.Flatten(),
            L.Dense(10, "softmax"),
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.keras"
        network.save(path)
        return keras.saving.load_model(path)


NETWORKS = {
    "MLP": Network(mlp, digits),
    "LeNet": Network(lenet, digits),
    "ResNet-8": Network(resnet, digits),
    "MobileNet-like": Network(mobilenet, digits),
    "U-Net": Network(unet, pixels, ("bernoulli",)),
    "1-D CNN": Network(convolution_1d, waves),
    "LSTM": Network(lstm, series, ("normal",)),
    "GRU": Network(gru, series, ("normal",)),
    "bidirectional LSTM": Network(bidirectional, digits),
    "transformer encoder": Network(transformer, digits),
    "masked text CNN": Network(text_convolution, texts),
    "autoencoder": Network(autoencoder, flat_digits, ("normal",)),
    "two-tower": Network(two_tower, ratings, ("bernoulli",)),
    "two outputs": Network(
        multi_output, digits_and_parity, ("categorical", "bernoulli")
    ),
    "mixed precision": Network(mixed_precision, digits),
    "BatchNormalization": Network(batch_normalized, digits),
    "Dropout": Network(dropout, digits),
    "LoRA": Network(lora, digits),
    "keras.applications": Network(application, large_digits),
    "loaded from .keras": Network(loaded, digits),
}
