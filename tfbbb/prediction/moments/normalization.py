"""Shifts and scales, fixed or of the row itself."""

from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from tfbbb.base.batch_layout import dimensions
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.prediction.moments.marginals import Marginals
from tfbbb.prediction.moments.registry import Call, register_moments

DELTA = "It is linearised about the means, and its inputs are taken as independent."


@register_moments(layers.BatchNormalization)
def batch_normalization(call: Call) -> Marginals:
    """`gamma (x - moving_mean) / sqrt(moving_variance + epsilon) + beta`, exactly."""
    layer, x = call.operation, call.inputs
    axes = [layer.axis] if isinstance(layer.axis, int) else list(layer.axis)
    spread = _along(axes, x.mean, layer.moving_variance)
    scale = tf.math.rsqrt(spread + layer.epsilon)
    if layer.scale:
        scale *= _along(axes, x.mean, layer.gamma)
    shift = -scale * _along(axes, x.mean, layer.moving_mean)
    if layer.center:
        shift += _along(axes, x.mean, layer.beta)
    return affine(x, scale, shift)


@register_moments(layers.Normalization)
def feature_normalization(call: Call) -> Marginals:
    """`(x - mean) / stddev` of the data, or its inverse, exactly."""
    layer = call.operation
    mean, variance = (
        tf.cast(layer.mean, tf.float32),
        tf.cast(layer.variance, tf.float32),
    )
    stddev = tf.maximum(tf.sqrt(variance), keras.config.epsilon())
    if layer.invert:
        return affine(call.inputs, stddev, mean)
    return affine(call.inputs, 1.0 / stddev, -mean / stddev)


@register_moments(layers.Rescaling)
def rescaling(call: Call) -> Marginals:
    """`scale x + offset`, exactly."""
    scale, offset = (
        np.asarray(value, "float32")
        for value in (call.operation.scale, call.operation.offset)
    )
    if scale.ndim and keras.config.image_data_format() == "channels_first":
        call.refuse("it has a scale for each channel, and channels come first")
    return affine(call.inputs, scale, offset)


def affine(x: Marginals, scale: Tensor, shift: Tensor) -> Marginals:
    """Returns the marginals of `scale x + shift`, element by element."""
    return x.replace(
        mean=scale * x.mean + shift, variance=tf.square(scale) * x.variance
    )


@register_moments(layers.LayerNormalization)
def layer_normalization(call: Call) -> Marginals:
    """`gamma (x - mean(x)) / sqrt(var(x) + epsilon) + beta`, over axes of the row.

    Approximate, as the others that follow: see `standardized`.
    """
    layer, x = call.operation, call.inputs
    if layer.rms_scaling:
        call.refuse("it has `rms_scaling=True`; `RMSNormalization` has a rule")
    axes = [layer.axis] if isinstance(layer.axis, int) else sorted(layer.axis)
    return affine(
        standardized(call, x, axes, layer.epsilon),
        _along(axes, x.mean, layer.gamma) if layer.scale else 1.0,
        _along(axes, x.mean, layer.beta) if layer.center else 0.0,
    )


@register_moments(layers.GroupNormalization)
def group_normalization(call: Call) -> Marginals:
    """Like a layer normalisation of each group of channels, over all positions."""
    layer, x = call.operation, call.inputs
    axis = layer.axis % len(x.mean.shape)
    sizes = dimensions(x.mean, 0)
    apart = [*sizes[:axis], layer.groups, sizes[axis] // layer.groups]
    shape = [*apart, *sizes[axis + 1 :]]
    grouped = x.replace(
        mean=tf.reshape(x.mean, shape), variance=tf.reshape(x.variance, shape)
    )
    axes = [i for i in range(1, len(shape)) if i != axis]
    normal = standardized(call, grouped, axes, layer.epsilon)
    together = normal.replace(
        mean=tf.reshape(normal.mean, sizes), variance=tf.reshape(normal.variance, sizes)
    )
    return affine(
        together,
        _along([axis], x.mean, layer.gamma) if layer.scale else 1.0,
        _along([axis], x.mean, layer.beta) if layer.center else 0.0,
    )


@register_moments(layers.RMSNormalization)
def rms_normalization(call: Call) -> Marginals:
    """`scale x / sqrt(mean(x^2) + epsilon)`, over axes of the row."""
    layer, x = call.operation, call.inputs
    axes = [layer.axis] if isinstance(layer.axis, int) else sorted(layer.axis)
    scale = tf.cast(tf.convert_to_tensor(layer.scale), tf.float32)
    return affine(standardized(call, x, axes, layer.epsilon, centred=False), scale, 0.0)


def standardized(
    call: Call, x: Marginals, axes: Sequence[int], epsilon: float, centred: bool = True
) -> Marginals:
    """Returns the marginals of x brought to mean 0 and variance 1 over axes of a row.

    By the delta method about the means m, with `z = (m - mean(m)) / r` and r^2 the
    expectation of what x is divided by the root of: over the n elements, of variance v,

        r^2 = mean((m - mean(m))^2) + (1 - 1/n) mean(v) + epsilon
        E_i = z_i,   Var_i = sum_j J_ij^2 v_j,   J_ij = (1[i=j] - 1/n - z_i z_j / n) / r

    Without centring, the terms `mean(m)`, `- 1/n` are not there.
    """
    call.approximate(DELTA)
    axes = list(axes)
    sizes = dimensions(x.mean, 0)
    n = tf.cast(tf.reduce_prod([sizes[axis] for axis in axes]), tf.float32)

    def average(values: ArrayLike) -> Tensor:
        return tf.reduce_mean(values, axes, keepdims=True)

    one = 1.0 if centred else 0.0
    m = x.mean - one * average(x.mean)
    v = x.variance
    power = average(tf.square(m)) + (1.0 - one / n) * average(v) + epsilon
    z = m * tf.math.rsqrt(power)
    # sum_j (1/n + z_i z_j / n)^2 v_j, and its term of j = i.
    whole = one * average(v) + 2.0 * one * z * average(z * v)
    whole += tf.square(z) * average(tf.square(z) * v)
    variance = (v * (1.0 - 2.0 * (one + tf.square(z)) / n) + whole / n) / power
    return x.replace(
        mean=z, variance=tf.nn.relu(variance), independent=False, normal=False
    )


def _along(axes: Sequence[int], tensor: Tensor, values: ArrayLike) -> Tensor:
    """Returns values along some axes of a tensor, in a shape that broadcasts."""
    rank = len(tensor.shape)
    places = {axis % rank for axis in axes}
    shape = [tensor.shape[i] if i in places else 1 for i in range(rank)]
    return tf.reshape(tf.cast(tf.convert_to_tensor(values), tf.float32), shape)
