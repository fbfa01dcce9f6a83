"""Layers that are linear in a kernel compute what Keras' do, for many kernels too."""

import re

import numpy as np
import pytest
import tensorflow as tf

from tests.keras_twins import flat_posterior, keras_twin, with_weights
from tfbbb import layers, posteriors

# No output has as many columns as filters: Keras would take them for channels when it
# adds the bias to channels that are first.
SHAPES = {1: (2, 9, 4), 2: (2, 7, 5, 4), 3: (2, 4, 3, 5, 4)}
# A standard deviation far below the rounding of the outputs.
NARROW = posteriors.MeanFieldNormal(initial_scale=1e-8)
ESTIMATORS = ("weight", "flipout", "local")
# Each layer with each kind of option, and padding and data format in turn.
CONVOLUTIONS = [
    ("Conv1D", (8, 3), {"padding": "causal", "dilation_rate": 2}),
    ("Conv1D", (8, 3), {"padding": "causal", "strides": 2}),
    ("Conv1D", (8, 3), {"padding": "same", "groups": 2}),
    ("Conv2D", (8, (3, 2)), {"groups": 2}),
    ("Conv2D", (8, (3, 2)), {"padding": "same", "strides": 2}),
    ("Conv2D", (8, (3, 2)), {"padding": "same", "dilation_rate": 2}),
    ("Conv3D", (8, 2), {"padding": "same"}),
    ("Conv1DTranspose", (8, 3), {"strides": 2}),
    ("Conv1DTranspose", (8, 3), {"padding": "same", "dilation_rate": 2}),
    ("Conv2DTranspose", (8, (3, 2)), {"strides": 3, "output_padding": 1}),
    ("Conv2DTranspose", (8, 3), {"padding": "same", "strides": 2}),
    ("Conv3DTranspose", (8, 2), {"strides": 2}),
    ("DepthwiseConv2D", (3,), {"depth_multiplier": 2}),
    ("DepthwiseConv2D", (3,), {"padding": "same", "dilation_rate": 2}),
    ("SeparableConv2D", (8, 3), {"depth_multiplier": 2}),
    ("SeparableConv2D", (8, 3), {"padding": "same", "strides": 2}),
]
FORMATS = ("channels_last", "channels_first")
# equation, output_shape, bias_axes, shape of the input, whether a weight is used once
EQUATIONS = [
    ("ab,bc->ac", 5, "c", (2, 4), True),
    ("abc,cd->abd", (3, 5), "d", (2, 3, 4), False),
    ("abc,bcd->abd", (3, 5), "bd", (2, 3, 4), True),
    ("abc,bcd->abd", (3, 5), "d", (2, 3, 4), False),
    ("abc,bcd->ad", 5, None, (2, 3, 4), True),
    ("abc,cd->ad", 5, "d", (2, 3, 4), False),
    ("abc,bd->acd", (4, 5), None, (2, 3, 4), False),
    ("...x,xyz->...yz", (5, 2), "z", (2, 4), False),
    ("...x,xyz->...yz", (5, 2), "yz", (2, 4), True),
    ("...x,xy->...y", 5, "y", (2, 3, 2, 4), False),
    ("ab...,bc->ac...", 5, "c", (2, 3, 4), False),
    ("abc,b->abc", (3, 4), None, (2, 3, 4), False),
    ("abc,bc->abc", (3, 4), "bc", (2, 3, 4), True),
]


def cases():
    """Name of the layer, its arguments and options, and inputs."""
    generator = np.random.default_rng(0)
    for index, (name, arguments, options) in enumerate(CONVOLUTIONS):
        x = generator.normal(size=SHAPES[int(re.search(r"(\d)D", name)[1])])
        data_format = FORMATS[index % 2]
        if data_format == "channels_first":
            x = np.moveaxis(x, -1, 1)
        options = {**options, "data_format": data_format}
        yield name, arguments, options, x.astype("float32")
    for equation, output_shape, bias_axes, shape, _ in EQUATIONS:
        x = generator.normal(size=shape).astype("float32")
        yield "EinsumDense", (equation, output_shape), {"bias_axes": bias_axes}, x
    for dtype in ("int32", "uint8", "float32"):
        yield "Embedding", (6, 3), {}, np.array([[1, 5], [0, 1], [3, 3]], dtype)


CASES = list(cases())


def made(name, arguments, options, **others):
    if name != "Embedding":
        others["bias_initializer"] = "random_normal"
    kind = getattr(layers, f"{name}Variational")
    return kind(*arguments, **{"kl_weight": 0.1, **options, **others})


@pytest.mark.parametrize(
    ("name", "arguments", "options", "x", "estimator"),
    [
        (*case, "auto" if "Separable" in case[0] else ESTIMATORS[index % 3])
        for index, case in enumerate(CASES)
    ],
)
def test_a_narrow_posterior_computes_what_keras_computes(
    name, arguments, options, x, estimator
):
    narrow = {"posterior": NARROW, "bias_posterior": NARROW, "estimator": estimator}
    layer = made(name, arguments, options, **narrow)
    assert layer.compute_output_shape(x.shape) == layer(x).shape
    expected = with_weights(keras_twin(layer, x), x, flat_posterior(layer)[0])
    np.testing.assert_allclose(layer(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "arguments", "options", "x", "shared"),
    [
        (*case, index // 2 % 2 == 0)
        for index, case in enumerate(CASES)
        if "Separable" not in case[0]
    ],
)
@pytest.mark.usefixtures("compiled_functions")
def test_kernels_of_groups_act_each_on_its_own_rows(
    name, arguments, options, x, shared
):
    inputs = np.stack([x] if shared else [x, x[::-1], np.roll(x, 1, axis=-1)])
    layer = made(name, arguments, options)
    layer.build(x.shape)
    inputs = np.asarray(layer.cast_inputs(inputs))
    generator = np.random.default_rng(1)
    kernels = generator.normal(size=(3, *layer.kernel.shape)).astype("float32")
    # As in prediction, where neither groups nor rows are known to the graph.
    signature = [
        tf.TensorSpec([1 if shared else None, None, *x.shape[1:]], inputs.dtype),
        tf.TensorSpec([None, *layer.kernel.shape]),
    ]
    found = tf.function(layer.linear, input_signature=signature)(inputs, kernels)
    expected = [
        layer.linear(inputs[0 if shared else i], kernel)
        for i, kernel in enumerate(kernels)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    if layer.bias is not None:
        biases = generator.normal(size=(3, *layer.bias.shape)).astype("float32")
        biased = found + layer.broadcast_bias(biases, len(found.shape))
        for i, bias in enumerate(biases):
            one = expected[i] + layer.broadcast_bias(bias, len(expected[i].shape))
            np.testing.assert_allclose(biased[i], one, rtol=1e-4, atol=1e-4)
