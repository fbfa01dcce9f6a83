"""The largest of several elements."""

import itertools
import math

import keras
import tensorflow as tf
from keras import layers

from tfbbb.base.batch_layout import dimensions
from tfbbb.base.types import Tensor
from tfbbb.prediction.moments.linear import require_independence
from tfbbb.prediction.moments.marginals import Marginals, MeanAndVariance
from tfbbb.prediction.moments.mean_pooling import position_axes, same_padding
from tfbbb.prediction.moments.rectified import rectified_parts
from tfbbb.prediction.moments.registry import Call, register_moments

CLARK = "The larger one of two is taken as normal when it is compared with another."
NOT_NORMAL = "Its inputs are taken as normal, and they are not quite."

# Below all that is compared, and its difference from itself is finite.
_LOWEST = -1e30


@register_moments(layers.MaxPooling1D, layers.MaxPooling2D, layers.MaxPooling3D)
def max_pooling(call: Call) -> Marginals:
    """The largest element of each window, exact for windows of two normals."""
    layer, x = call.operation, call.inputs
    _note(call, x, math.prod(layer.pool_size))
    mean, variance = largest(
        _windows(layer, x.mean, _LOWEST), _windows(layer, x.variance, 0.0)
    )
    overlap = any(map(int.__lt__, layer.strides, layer.pool_size))
    return x.replace(
        mean=mean,
        variance=variance,
        independent=x.independent and not overlap,
        normal=x.normal and math.prod(layer.pool_size) == 1,
    )


@register_moments(
    layers.GlobalMaxPooling1D, layers.GlobalMaxPooling2D, layers.GlobalMaxPooling3D
)
def global_max_pooling(call: Call) -> Marginals:
    """The largest element of each channel, exact for two positions of normals."""
    layer, x = call.operation, call.inputs
    axes = position_axes(layer, x.mean)
    number = tf.TensorShape([x.mean.shape[axis] for axis in axes]).num_elements()
    if number is None:
        call.refuse("the number of positions of its inputs is not known beforehand")
    _note(call, x, number)
    others = [axis for axis in range(len(x.mean.shape)) if axis not in axes]

    def positions_first(tensor: Tensor) -> Tensor:
        sizes = [dimensions(tensor, 0)[axis] for axis in others]
        in_front = tf.transpose(tensor, [*axes, *others])
        return tf.reshape(in_front, [number, *sizes])

    mean, variance = largest(positions_first(x.mean), positions_first(x.variance))
    if layer.keepdims:
        for axis in axes:
            mean, variance = tf.expand_dims(mean, axis), tf.expand_dims(variance, axis)
    return x.replace(mean=mean, variance=variance, normal=x.normal and number == 1)


def largest(mean: Tensor, variance: Tensor) -> MeanAndVariance:
    """Returns mean and variance of the largest of independent normals (Clark 1961).

    Of two, with `d = m_1 - m_2`, `t^2 = v_1 + v_2` and `a = d / t`, exactly

        E = m_2 + r,   r = d Phi(a) + t phi(a)
        Var = v_1 Phi(a) + v_2 Phi(-a) - r (r - d)

    Of more, two by two as in a tournament, as if each winner were normal.

    Args:
        mean: [n, ...], of n normals each.
        variance: [n, ...].

    Returns:
        Two tensors [...].
    """
    number = mean.shape[0]
    while number > 1:
        half = number // 2
        m, v = _larger(
            mean[:half],
            variance[:half],
            mean[half : 2 * half],
            variance[half : 2 * half],
        )
        # Of an odd number one has no opponent.
        mean = tf.concat([m, mean[2 * half :]], 0) if number % 2 else m
        variance = tf.concat([v, variance[2 * half :]], 0) if number % 2 else v
        number = number - half
    return mean[0], variance[0]


def _larger(m_1: Tensor, v_1: Tensor, m_2: Tensor, v_2: Tensor) -> MeanAndVariance:
    distance = m_1 - m_2
    first, excess = rectified_parts(distance, v_1 + v_2)
    spread = v_1 * first + v_2 * (1.0 - first) - excess * (excess - distance)
    # The sum of the smaller mean and the excess would lose a small excess.
    mean = tf.maximum(m_1, m_2) + (excess - tf.nn.relu(distance))
    return mean, tf.nn.relu(spread)


def _windows(layer: keras.Layer, tensor: Tensor, padding: float) -> Tensor:
    """Returns the elements of every window, [elements, n, ...]."""
    axes = position_axes(layer, tensor)
    windows = []
    paddings: list[list[int]] = [[0, 0]] * len(tensor.shape)
    outputs: dict[int, Tensor] = {}
    for axis, size, stride in zip(axes, layer.pool_size, layer.strides, strict=True):
        length = dimensions(tensor, 0)[axis]
        if layer.padding == "same":
            begin, end, outputs[axis] = same_padding(length, size, stride)
            paddings[axis] = [begin, end]
        else:
            outputs[axis] = (length - size) // stride + 1
    padded = tf.pad(tensor, paddings, constant_values=padding)
    for offsets in itertools.product(*map(range, layer.pool_size)):
        slices = [slice(None)] * len(tensor.shape)
        for axis, offset, stride in zip(axes, offsets, layer.strides, strict=True):
            end = offset + stride * (outputs[axis] - 1) + 1
            slices[axis] = slice(offset, end, stride)
        windows.append(padded[tuple(slices)])
    return tf.stack(windows)


def _note(call: Call, inputs: Marginals, number: int) -> None:
    if number > 1:
        require_independence(call, inputs)
        if not inputs.normal:
            call.approximate(NOT_NORMAL)
    if number > 2:
        call.approximate(CLARK)
