"""The convolutions compute what Keras' do, for one kernel and for many."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.keras_twins import keras_twin, set_known_posterior, weights_of, with_weights
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

# No output has as many columns as filters: Keras would take them for channels when it
# adds the bias to channels that are first.
SHAPES = {1: (2, 9, 4), 2: (2, 7, 5, 4), 3: (2, 4, 3, 5, 4)}
# A standard deviation far below the rounding of the outputs.
POINTS = {
    "posterior": posteriors.MeanFieldNormal(initial_scale=1e-8),
    "bias_posterior": posteriors.MeanFieldNormal(initial_scale=1e-8),
    "bias_initializer": "random_normal",
    "kl_weight": 0.1,
}
# Each layer with each kind of option, and padding and data format in turn.
CASES = [
    (Conv1DVariational, (8, 3), {"padding": "causal", "dilation_rate": 2}),
    (Conv1DVariational, (8, 3), {"padding": "causal", "strides": 2}),
    (Conv1DVariational, (8, 3), {"padding": "same", "groups": 2}),
    (Conv2DVariational, (8, (3, 2)), {"groups": 2}),
    (Conv2DVariational, (8, (3, 2)), {"padding": "same", "strides": 2}),
    (Conv2DVariational, (8, (3, 2)), {"padding": "same", "dilation_rate": 2}),
    (Conv3DVariational, (8, 2), {"padding": "same"}),
    (Conv1DTransposeVariational, (8, 3), {"strides": 2}),
    (Conv1DTransposeVariational, (8, 3), {"padding": "same", "dilation_rate": 2}),
    (Conv2DTransposeVariational, (8, (3, 2)), {"strides": 3, "output_padding": 1}),
    (Conv2DTransposeVariational, (8, 3), {"padding": "same", "strides": 2}),
    (Conv3DTransposeVariational, (8, 2), {"strides": 2}),
    (DepthwiseConv2DVariational, (3,), {"depth_multiplier": 2}),
    (DepthwiseConv2DVariational, (3,), {"padding": "same", "dilation_rate": 2}),
    (SeparableConv2DVariational, (8, 3), {"depth_multiplier": 2}),
    (SeparableConv2DVariational, (8, 3), {"padding": "same", "strides": 2}),
]
FORMATS = ("channels_last", "channels_first")


def rank_of(kind):
    return int(re.search(r"(\d)D", kind.__name__)[1])


def rows_of(layer, seed=0, data_format="channels_last"):
    x = np.random.default_rng(seed).normal(size=SHAPES[rank_of(layer)])
    x = np.moveaxis(x, -1, 1) if data_format == "channels_first" else x
    return x.astype("float32")


@pytest.mark.parametrize(
    ("kind", "arguments", "options", "data_format"),
    [(*case, FORMATS[index % 2]) for index, case in enumerate(CASES)],
)
def test_a_narrow_posterior_computes_what_keras_computes(
    kind, arguments, options, data_format
):
    x = rows_of(kind, data_format=data_format)
    layer = kind(*arguments, data_format=data_format, **options, **POINTS)
    assert layer.compute_output_shape(x.shape) == layer(x).shape
    twin = keras_twin(layer, x)
    means = np.concatenate([np.ravel(weight.mean) for weight in weights_of(layer)])
    expected = with_weights(twin, x, means)
    np.testing.assert_allclose(layer(x), expected, rtol=1e-4, atol=1e-5)


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
    ("kind", "arguments", "options", "shared", "data_format"),
    [
        (*case, index % 2 == 0, FORMATS[index // 2 % 2])
        for index, case in enumerate(CASES)
        if case[0] is not SeparableConv2DVariational
    ],
)
@pytest.mark.usefixtures("compiled_functions")
def test_kernels_of_groups_act_each_on_its_own_rows(
    kind, arguments, options, shared, data_format
):
    x = rows_of(kind, data_format=data_format)
    inputs = np.stack([x] if shared else [x, 2 * x, x - 1])
    layer = kind(*arguments, data_format=data_format, kl_weight=0.1, **options)
    layer.build(x.shape)
    generator = np.random.default_rng(1)
    kernels = generator.normal(size=(3, *layer.kernel.shape)).astype("float32")

    # As in prediction, where neither groups nor rows are known to the graph.
    @tf.function(
        input_signature=[
            tf.TensorSpec([1 if shared else None, None, *x.shape[1:]]),
            tf.TensorSpec([None, *layer.kernel.shape]),
        ]
    )
    def linear(inputs, kernels):
        return layer.linear(inputs, kernels)

    found = linear(inputs, kernels)
    expected = [
        layer.linear(inputs[0 if shared else i], kernel)
        for i, kernel in enumerate(kernels)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    biases = generator.normal(size=(3, *layer.bias.shape)).astype("float32")
    biased = found + layer.broadcast_bias(biases, len(found.shape))
    for i, bias in enumerate(biases):
        one = expected[i] + layer.broadcast_bias(bias, len(x.shape))
        np.testing.assert_allclose(biased[i], one, rtol=1e-4, atol=1e-4)


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
