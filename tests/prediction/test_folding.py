"""Samples beside each other in the channels give the answers of samples in the rows."""

import keras
import numpy as np
import pytest

from tests.posterior_draws import engine_draws
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import (
    Conv1DVariational,
    Conv2DVariational,
    DenseVariational,
    SeparableConv2DVariational,
)
from tfbbb.layers.conv_variational import ConvVariational
from tfbbb.prediction import folding, network_pass

WIDE = {
    "posterior": MeanFieldNormal(initial_scale=1.0),
    "bias_posterior": MeanFieldNormal(initial_scale=0.3),
    "bias_initializer": "random_normal",
}
GENERATOR = np.random.default_rng(0)
IMAGES = GENERATOR.normal(size=(3, 6, 6, 2)).astype("float32")
SEQUENCES = GENERATOR.normal(size=(3, 8, 2)).astype("float32")


class FlippedPooling(keras.layers.MaxPooling2D):
    """A subclass that does not treat every channel alike."""

    def call(self, inputs):
        return keras.ops.flip(super().call(inputs), axis=-1)


class FlippedConv(Conv2DVariational):
    """A subclass with a call of its own."""

    def call(self, inputs, training=None):
        return keras.ops.flip(super().call(inputs, training), axis=-1)


class MirroredConv(Conv2DVariational):
    """A subclass with a convolution of its own."""

    def convolve(self, inputs, kernel):
        return keras.ops.flip(super().convolve(inputs, kernel), axis=1)


def normalization():
    return keras.layers.BatchNormalization(
        beta_initializer="random_normal",
        moving_mean_initializer="random_normal",
        moving_variance_initializer=keras.initializers.RandomUniform(0.5, 2.0),
    )


def plain(x, **options):
    x = Conv2DVariational(4, 3, activation="relu", padding="same", **options)(x)
    x = keras.layers.MaxPooling2D()(x)
    x = Conv2DVariational(3, 2, activation="tanh", **options)(x)
    return keras.layers.Flatten()(x)


def groups_and_strides(x, **options):
    x = Conv2DVariational(4, 2, groups=2, use_bias=False, **options)(x)
    x = keras.layers.ZeroPadding2D()(keras.layers.LeakyReLU()(x))
    x = Conv2DVariational(6, 3, strides=2, groups=2, **options)(x)
    return keras.layers.Flatten()(keras.layers.UpSampling2D()(x))


def residual(x, **options):
    x = Conv2DVariational(4, 3, padding="same", **options)(x)
    inner = keras.layers.ReLU()(normalization()(x))
    inner = Conv2DVariational(4, 3, padding="same", **options)(inner)
    return keras.layers.GlobalAveragePooling2D()(keras.layers.Add()([x, inner]))


def left_and_entered_again(x, **options):
    gate = keras.layers.AveragePooling2D(6)(x)[..., :1]
    x = Conv2DVariational(2, 1, activation="softmax", **options)(x)
    x = keras.layers.Multiply()([Conv2DVariational(2, 2, **options)(x), gate])
    x = keras.layers.Activation("softmax")(Conv2DVariational(4, 2, **options)(x))
    x = FlippedPooling()(Conv2DVariational(3, 1, activation="elu", **options)(x))
    x = SeparableConv2DVariational(3, 1, **options)(keras.layers.Dense(2)(x))
    return keras.layers.Flatten()(x)


def of_subclasses(x, **options):
    x = Conv2DVariational(4, 3, activation="relu", **options)(x)
    x = FlippedConv(3, 2, activation="tanh", **options)(x)
    return keras.layers.Flatten()(MirroredConv(2, 2, **options)(x))


def causal(x, **options):
    x = Conv1DVariational(4, 3, padding="causal", **options)(x)
    x = normalization()(keras.layers.MaxPooling1D()(x))
    x = Conv1DVariational(3, 2, padding="causal", **options)(x)
    return keras.layers.GlobalMaxPooling1D()(x)


def network(body, x, members=1):
    keras.utils.set_random_seed(1)
    inputs = keras.Input(x.shape[1:])
    hidden = body(inputs, members=members, **WIDE)
    outputs = DenseVariational(2, members=members, **WIDE)(hidden)
    return keras.Model(inputs, outputs)


@pytest.mark.parametrize(
    "body",
    [
        plain,
        groups_and_strides,
        residual,
        left_and_entered_again,
        of_subclasses,
        causal,
    ],
)
def test_samples_in_channels_answer_as_samples_in_rows(body, monkeypatch):
    x = SEQUENCES if body is causal else IMAGES
    model = network(body, x, members=1 if body is plain else 2)
    found = engine_draws(model, x, "weight", 6)
    monkeypatch.setattr(ConvVariational, "takes_channels_beside", False)
    expected = engine_draws(model, x, "weight", 6)
    # Single precision, summed in another order.
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert np.ptp(expected, axis=0).min() > 0.01


def test_samples_stay_in_channels_between_convolutions(monkeypatch):
    moved = []

    def without_channels(*arguments):
        moved.append(arguments)
        return folding.without_channels(*arguments)

    monkeypatch.setattr(network_pass, "without_channels", without_channels)
    monkeypatch.setattr(network_pass, "without_rows", None)
    for body, x in ((plain, IMAGES), (residual, IMAGES), (causal, SEQUENCES)):
        moved.clear()
        engine_draws(network(body, x), x, "weight", 4)
        assert len(moved) == 1
