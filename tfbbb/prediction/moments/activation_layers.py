"""Layers that are one activation."""

import tensorflow as tf
from keras import layers

from tfbbb.prediction.moments.activations import activated, elementwise
from tfbbb.prediction.moments.exponential import elu
from tfbbb.prediction.moments.marginals import Marginals
from tfbbb.prediction.moments.rectified import clipped, leaky_relu, rectified
from tfbbb.prediction.moments.registry import Call, register_moments


@register_moments(layers.Activation)
def activation(call: Call) -> Marginals:
    """The function that the layer was given."""
    return activated(call, call.operation.activation, call.inputs)


@register_moments(layers.ReLU)
def relu(call: Call) -> Marginals:
    """`max(x, 0)`, leaky below or cut off above."""
    layer = call.operation
    slope, upper = float(layer.negative_slope or 0.0), layer.max_value
    if layer.threshold or (slope and upper is not None):
        call.refuse("it has a threshold, or both a slope and a largest value")
    if upper is not None:
        return elementwise(call, call.inputs, lambda m, v: clipped(m, v, float(upper)))
    if slope:
        return elementwise(call, call.inputs, lambda m, v: leaky_relu(m, v, slope))
    return elementwise(call, call.inputs, rectified)


@register_moments(layers.LeakyReLU)
def leaky(call: Call) -> Marginals:
    """`x` above 0, `negative_slope x` below."""
    slope = float(call.operation.negative_slope)
    return elementwise(call, call.inputs, lambda m, v: leaky_relu(m, v, slope))


@register_moments(layers.PReLU)
def parametric(call: Call) -> Marginals:
    """`x` above 0, `alpha x` below, `alpha` being learned."""
    slope = tf.cast(tf.convert_to_tensor(call.operation.alpha), tf.float32)
    return elementwise(call, call.inputs, lambda m, v: leaky_relu(m, v, slope))


@register_moments(layers.ELU)
def exponential_linear(call: Call) -> Marginals:
    """`x` above 0, `alpha (exp(x) - 1)` below."""
    alpha = float(call.operation.alpha)
    return elementwise(call, call.inputs, lambda m, v: elu(m, v, alpha))
