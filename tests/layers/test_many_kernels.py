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
@pytest.mark.parametrize("rows", [1, 20])
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
