"""The depthwise convolution, which filters each channel separately."""

import math

import keras
from keras import ops

from tfbbb.base.types import Tensor
from tfbbb.layers.convolution import Convolution


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

    Input shape:
        [batch, height, width, channels].

    Output shape:
        [batch, new_height, new_width, channels * depth_multiplier].
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
