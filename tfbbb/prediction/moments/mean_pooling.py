"""Averages over positions."""

import math

import keras
import tensorflow as tf
from keras import layers, ops

from tfbbb.base.batch_layout import dimensions
from tfbbb.base.types import Tensor
from tfbbb.prediction.moments.linear import require_independence
from tfbbb.prediction.moments.marginals import Marginals
from tfbbb.prediction.moments.registry import Call, register_moments


@register_moments(
    layers.AveragePooling1D, layers.AveragePooling2D, layers.AveragePooling3D
)
def average_pooling(call: Call) -> Marginals:
    """The mean of the n elements in a window, of the variance `sum_i v_i / n^2`.

    Exact for elements that are independent. Positions that share weights are not.
    """
    layer, x = call.operation, call.inputs
    if math.prod(layer.pool_size) > 1:
        require_independence(call, x)
    options = {
        "pool_size": layer.pool_size,
        "strides": layer.strides,
        "padding": layer.padding,
        "data_format": layer.data_format,
    }
    mean, variance = (ops.average_pool(y, **options) for y in (x.mean, x.variance))
    overlap = any(map(int.__lt__, layer.strides, layer.pool_size))
    return x.replace(
        mean=mean,
        variance=variance / _elements_of_windows(layer, x.mean),
        independent=x.independent and not overlap,
    )


@register_moments(
    layers.GlobalAveragePooling1D,
    layers.GlobalAveragePooling2D,
    layers.GlobalAveragePooling3D,
)
def global_average_pooling(call: Call) -> Marginals:
    """Averages all positions of a channel, exact if they are independent."""
    layer, x = call.operation, call.inputs
    if call.kwargs.get("mask") is not None:
        call.refuse("its inputs have a mask")
    require_independence(call, x)
    axes = position_axes(layer, x.mean)
    number = math.prod(dimensions(x.mean, 0)[axis] for axis in axes)
    mean, variance = (
        tf.reduce_mean(y, axes, keepdims=layer.keepdims) for y in (x.mean, x.variance)
    )
    return x.replace(mean=mean, variance=variance / tf.cast(number, tf.float32))


def position_axes(layer: keras.Layer, tensor: Tensor) -> list[int]:
    """Returns the axes of a tensor that a pooling layer moves or sums along."""
    first = 1 if layer.data_format == "channels_last" else 2
    return list(range(first, first + len(tensor.shape) - 2))


def _elements_of_windows(layer: keras.Layer, inputs: Tensor) -> Tensor:
    """Returns how many elements each window has, in a shape that broadcasts."""
    counts: Tensor = 1.0
    for place, axis in enumerate(position_axes(layer, inputs)):
        size, stride = layer.pool_size[place], layer.strides[place]
        length = dimensions(inputs, 0)[axis]
        if layer.padding == "valid":
            counts = counts * float(size)
            continue
        begin, outputs = same_padding(length, size, stride)[0::2]
        first = tf.range(outputs) * stride - begin
        count = tf.minimum(first + size, length) - tf.maximum(first, 0)
        shape = [-1 if other == axis else 1 for other in range(len(inputs.shape))]
        counts = counts * tf.reshape(tf.cast(count, tf.float32), shape)
    return counts


def same_padding(
    length: int | Tensor, size: int, stride: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the padding before and after an axis, and the number of windows."""
    outputs = -(-length // stride)
    missing = (outputs - 1) * stride + size - length
    total = max(missing, 0) if isinstance(length, int) else tf.maximum(missing, 0)
    begin = total // 2
    return begin, total - begin, outputs
