"""Layers of Keras with certain weights, of uncertain inputs."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from keras import layers, ops

from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.prediction.moments.activations import activated
from tfbbb.prediction.moments.linear import through_fixed_kernel
from tfbbb.prediction.moments.marginals import Marginals
from tfbbb.prediction.moments.registry import Call, register_moments


@register_moments(layers.Dense)
def dense(call: Call) -> Marginals:
    """`activation(x @ W + b)`."""
    return _linear(call, ops.matmul)


@register_moments(layers.EinsumDense)
def einsum_dense(call: Call) -> Marginals:
    """`activation(einsum(equation, x, W) + b)`."""
    equation = call.operation.equation
    return _linear(call, lambda x, kernel: ops.einsum(equation, x, kernel))


@register_moments(layers.Conv1D, layers.Conv2D, layers.Conv3D)
def convolution(call: Call) -> Marginals:
    """`activation(conv(x, W) + b)`."""
    layer = call.operation
    causal = layer.padding == "causal"

    def convolve(x: ArrayLike, kernel: Tensor) -> Tensor:
        if causal:
            steps = layer.dilation_rate[0] * (layer.kernel_size[0] - 1)
            paddings = [(0, 0), (0, 0), (0, 0)]
            paddings[2 if _has_channels_first(layer) else 1] = (steps, 0)
            x = ops.pad(x, paddings)
        return ops.conv(
            x,
            kernel,
            strides=layer.strides,
            padding="valid" if causal else layer.padding,
            data_format=layer.data_format,
            dilation_rate=layer.dilation_rate,
        )

    return _linear(call, convolve)


@register_moments(
    layers.Conv1DTranspose, layers.Conv2DTranspose, layers.Conv3DTranspose
)
def transposed_convolution(call: Call) -> Marginals:
    """`activation(conv_transpose(x, W) + b)`."""
    layer = call.operation

    def convolve(x: ArrayLike, kernel: Tensor) -> Tensor:
        return ops.conv_transpose(
            x, kernel, output_padding=layer.output_padding, **_geometry(layer)
        )

    return _linear(call, convolve)


@register_moments(layers.DepthwiseConv1D, layers.DepthwiseConv2D)
def depthwise_convolution(call: Call) -> Marginals:
    """`activation(depthwise_conv(x, W) + b)`."""
    geometry = _geometry(call.operation)
    return _linear(call, lambda x, kernel: ops.depthwise_conv(x, kernel, **geometry))


@register_moments(layers.SeparableConv1D, layers.SeparableConv2D)
def separable_convolution(call: Call) -> Marginals:
    """A convolution whose kernel is a product of the depthwise and the pointwise one.

    In two steps, the second would meet inputs that depend on each other.
    """
    layer = call.operation

    def kernel() -> Tensor:
        depthwise = tf.convert_to_tensor(layer.depthwise_kernel)
        channels, multiplier = depthwise.shape[-2:]
        pointwise = tf.reshape(
            layer.pointwise_kernel, [channels, multiplier, layer.filters]
        )
        return tf.einsum("...cm,cmf->...cf", depthwise, pointwise)

    outputs = through_fixed_kernel(
        call,
        call.inputs,
        kernel,
        lambda x, kernel: ops.conv(x, kernel, **_geometry(layer)),
        _bias(layer),
    )
    return activated(call, layer.activation, outputs)


def _linear(call: Call, linear: Callable[[Tensor, Tensor], Tensor]) -> Marginals:
    layer = call.operation
    outputs = through_fixed_kernel(
        call, call.inputs, lambda: layer.kernel, linear, _bias(layer)
    )
    return activated(call, layer.activation, outputs)


def _geometry(layer: keras.Layer) -> dict[str, Any]:
    return {
        "strides": layer.strides,
        "padding": layer.padding,
        "data_format": layer.data_format,
        "dilation_rate": layer.dilation_rate,
    }


def _has_channels_first(layer: keras.Layer) -> bool:
    return getattr(layer, "data_format", None) == "channels_first"


def _bias(layer: keras.Layer) -> Tensor:
    if layer.bias is None:
        return None
    bias = tf.convert_to_tensor(layer.bias)
    if _has_channels_first(layer):
        return tf.reshape(bias, [-1, *[1] * layer.rank])
    return bias
