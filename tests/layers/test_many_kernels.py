"""Convolutions with a kernel for each group of rows, in prediction."""

import numpy as np
import pytest
import tensorflow as tf

from tfbbb.base.call_context import call_with
from tfbbb.layers import Conv1DVariational, Conv2DVariational

LAYERS = [
    (Conv2DVariational(6, 3, padding="same"), (9, 8, 4)),
    (Conv2DVariational(6, (3, 2), strides=2, groups=2), (9, 8, 4)),
    (Conv2DVariational(6, 3, dilation_rate=2, padding="same"), (9, 8, 4)),
    (Conv1DVariational(6, 3, padding="causal"), (11, 4)),
    (Conv1DVariational(6, 3, strides=2, padding="same", groups=2), (11, 4)),
]


@pytest.mark.parametrize(("layer", "shape"), LAYERS)
@pytest.mark.parametrize("rows", [1, 3, 20])
def test_each_group_meets_its_own_kernel(layer, shape, rows):
    if not layer.built:
        layer.build((None, *shape))
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(5, rows, *shape)).astype("float32")
    kernels = generator.normal(size=(5, *layer.kernel.shape)).astype("float32")
    expected = [layer.convolve(*pair) for pair in zip(inputs, kernels, strict=True)]
    specs = [
        tf.TensorSpec([None, None, *shape]),
        tf.TensorSpec([None, *layer.kernel.shape]),
    ]
    with call_with(layer_draws=object()):
        convolve = tf.function(layer.linear, input_signature=specs)
        found = convolve(inputs, kernels)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("layer", "shape"), [pair for pair in LAYERS if pair[0].takes_channels_beside]
)
def test_arranged_draws_convolve_as_separate_kernels(layer, shape):
    if not layer.built:
        layer.build((None, *shape))
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(2, *shape)).astype("float32")
    draws = {
        weight.name: generator.normal(size=(5, *weight.shape)).astype("float32")
        for weight in layer.variational_weights
    }
    expected = [
        layer.convolve(inputs, kernel) + bias
        for kernel, bias in zip(draws["kernel"], draws["bias"], strict=True)
    ]
    arranged = layer.arranged(draws)
    found = layer.convolve_beside(inputs, arranged)
    np.testing.assert_allclose(found, np.concatenate(expected, -1), atol=1e-4)
    # Arranged draws stay as they are.
    again = layer.arranged(arranged)
    assert all(again[name] is arranged[name] for name in arranged)
