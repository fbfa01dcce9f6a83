"""The depthwise convolution, which filters each channel separately."""

import math

import keras
import tensorflow as tf
from keras import ops

from tfbbb.base.batch_layout import dimensions
from tfbbb.base.types import Tensor
from tfbbb.layers.convolution import Convolution, channels_apart


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class DepthwiseConv2DVariational(Convolution, keras.layers.DepthwiseConv2D):
    """A convolution of each channel by its own kernels, which have a posterior.

    `output[..., c * depth_multiplier + m] = activation(conv2d(input[..., c],
    kernel[..., c, m]) + bias)`, `kernel, bias ~ q`

    All positions of a row share its weights, as in `Conv2DVariational`. The fan-in is
    `height * width` of the kernel.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.DepthwiseConv2DVariational(
    ...     3, depth_multiplier=2, kl_weight=0.1
    ... )
    >>> layer(np.ones((2, 8, 8, 3))).shape
    TensorShape([2, 6, 6, 6])

    Args:
        kernel_size: Height and width of the kernels, one integer or two.
        strides: Steps of the kernels, one integer or two.
        depth_multiplier: Number of output channels for each input channel.
        use_bias: Whether a bias is added, one for each output channel.
        depthwise_initializer: Keras initializer of the kernel's posterior mean.
        depthwise_regularizer: Keras regularizer of the kernel's posterior mean.
        depthwise_constraint: Keras constraint on the kernel's posterior mean.

    Input shape:
        [batch, height, width, channels], or [batch, channels, height, width] with
        `data_format="channels_first"`.

    Output shape:
        [batch, new_height, new_width, channels * depth_multiplier], or [batch, channels
        * depth_multiplier, new_height, new_width].

    Raises:
        ValueError: A size is not a positive integer, padding or data format is unknown,
            or as for `DenseVariational`.
    """

    def fan_in(self, kernel_shape: tuple[int, ...]) -> int:
        return math.prod(self.kernel_size)

    def convolve(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        return ops.depthwise_conv(
            inputs,
            kernel,
            strides=self.strides,
            padding=self.padding,
            data_format=self.data_format,
            dilation_rate=self.dilation_rate,
        )

    def convolve_shared(self, inputs: Tensor, kernels: Tensor) -> Tensor:
        if not self.takes_any_number_of_channels:
            return super().convolve_shared(inputs, kernels)
        # More kernels for each channel.
        outputs = self.convolve(inputs, _merged_axes(kernels, (1, 2, 3, 0, 4), 3))
        channels = kernels.shape[3]
        return channels_apart(
            outputs,
            tf.shape(kernels)[0],
            outer=channels,
            channels=channels * self.depth_multiplier,
            channel_axis=self.channel_axis,
        )

    def convolve_each(self, inputs: Tensor, kernels: Tensor) -> Tensor:
        if not self.takes_any_number_of_channels:
            return super().convolve_each(inputs, kernels)
        # More channels, each with its own kernels.
        if self.data_format == "channels_last":
            beside = _merged_axes(inputs, (1, 2, 3, 0, 4), 3)
        else:
            beside = _merged_axes(inputs, (1, 0, 2, 3, 4), 1)
        outputs = self.convolve(beside, _merged_axes(kernels, (1, 2, 0, 3, 4), 2))
        return channels_apart(
            outputs,
            tf.shape(kernels)[0],
            outer=1,
            channels=kernels.shape[3] * self.depth_multiplier,
            channel_axis=self.channel_axis,
        )


def _merged_axes(tensor: Tensor, order: tuple[int, ...], axis: int) -> tf.Tensor:
    """Returns the tensor transposed, with `axis` and the next one made one."""
    transposed = tf.transpose(tensor, order)
    sizes = dimensions(transposed, 0)
    merged = [*sizes[:axis], sizes[axis] * sizes[axis + 1], *sizes[axis + 2 :]]
    return tf.reshape(transposed, merged)
