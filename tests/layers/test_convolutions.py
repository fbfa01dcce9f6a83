"""Channels, fan-in and parts of convolutions."""

import keras
import numpy as np
import pytest

from tests.keras_twins import set_known_posterior
from tfbbb import posteriors, priors
from tfbbb.layers import (
    Conv1DTransposeVariational,
    Conv1DVariational,
    Conv2DTransposeVariational,
    Conv2DVariational,
    Conv3DTransposeVariational,
    Conv3DVariational,
    DepthwiseConv2DVariational,
    SeparableConv2DVariational,
)

SHAPES = {1: (2, 9, 4), 2: (2, 7, 5, 4), 3: (2, 4, 3, 5, 4)}
# A standard deviation far below the rounding of the outputs.
POINTS = {
    "posterior": posteriors.MeanFieldNormal(initial_scale=1e-8),
    "bias_posterior": posteriors.MeanFieldNormal(initial_scale=1e-8),
    "bias_initializer": "random_normal",
    "kl_weight": 0.1,
}


@pytest.mark.parametrize("estimator", ["weight", "flipout", "local"])
def test_bias_belongs_to_channels_and_not_to_columns(estimator):
    x = np.random.default_rng(0).normal(size=(2, 4, 7, 6)).astype("float32")
    given = {**POINTS, "estimator": estimator, "padding": "same"}
    first = Conv2DVariational(6, 3, data_format="channels_first", **given)
    last = Conv2DVariational(6, 3, data_format="channels_last", **given)
    first.build(x.shape)
    last.build((2, 7, 6, 4))
    for mine, other in zip(first.weights, last.weights, strict=True):
        mine.assign(other)
    expected = np.moveaxis(np.asarray(last(np.moveaxis(x, 1, -1))), -1, 1)
    np.testing.assert_allclose(first(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("layer", "fan_in"),
    [
        (Conv1DVariational(6, 3), 3 * 4),
        (Conv2DVariational(6, (3, 2), groups=2), 3 * 2 * 2),
        (Conv3DVariational(6, 2), 8 * 4),
        (Conv1DTransposeVariational(6, 4, strides=2), 4 * 4 / 2),
        (Conv2DTransposeVariational(6, 3, strides=2), 9 * 4 / 4),
        (Conv3DTransposeVariational(6, 1, strides=2), 1),  # 4 / 8, but at least one
        (DepthwiseConv2DVariational(3), 9),
    ],
)
def test_fan_in_counts_the_inputs_of_an_output(layer, fan_in):
    layer.build(SHAPES[layer.rank])
    assert layer.kernel.fan_in == fan_in


def test_layers_inside_a_separable_convolution_have_its_families():
    options = {
        "posterior": posteriors.MeanFieldNormal(0.2),
        "prior": priors.Normal(0.3),
    }
    layer = SeparableConv2DVariational(4, 2, **options)
    for inner in (layer.depthwise, layer.pointwise):
        assert {"posterior": inner.posterior, "prior": inner.prior} == options


def test_regularizer_and_constraint_act_on_the_posterior_mean():
    layer = DepthwiseConv2DVariational(
        3,
        depthwise_regularizer=keras.regularizers.L2(0.5),
        depthwise_constraint=keras.constraints.NonNeg(),
        kl_weight=0.0,
    )
    layer.build(SHAPES[2])
    set_known_posterior(layer)
    mean = layer.kernel.variables["mean"]
    total = sum(layer._get_regularization_losses())
    np.testing.assert_allclose(total, 0.5 * np.sum(np.square(mean)), rtol=1e-5)
    assert mean.constraint(mean).numpy().min() == 0


@pytest.mark.parametrize("kind", [Conv2DVariational, Conv2DTransposeVariational])
def test_refuses_an_unknown_number_of_channels(kind):
    with pytest.raises(ValueError, match=r"channels.*must be known.*Received: input_"):
        kind(6, 3).build((None, 5, 5, None))
