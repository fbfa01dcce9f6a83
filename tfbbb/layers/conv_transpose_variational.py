"""Transposed convolutions in one, two and three dimensions."""

import math

import keras
from keras import ops

from tfbbb.base.types import Tensor
from tfbbb.layers.convolution import Convolution


class ConvTransposeVariational(Convolution):
    """Base of the transposed convolutions.

    Args:
        output_padding: Number of positions added to the output, less than `strides`;
            one integer, or one for each dimension.
    """

    def fan_in(self, kernel_shape: tuple[int, ...]) -> int:
        # An output uses only every `strides`-th position of the kernel.
        met = math.prod(self.kernel_size) / math.prod(self.strides)
        return max(1, round(met * kernel_shape[-1]))

    def convolve(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        return ops.conv_transpose(
            inputs,
            kernel,
            strides=self.strides,
            padding=self.padding,
            output_padding=self.output_padding,
            data_format=self.data_format,
            dilation_rate=self.dilation_rate,
        )


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class Conv1DTransposeVariational(
    ConvTransposeVariational, keras.layers.Conv1DTranspose
):
    """A transposed convolution over sequences whose weights have a posterior.

    `output = activation(conv1d_transpose(input, kernel) + bias)`, `kernel, bias ~ q`

    See `Conv2DTransposeVariational`.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.Conv1DTransposeVariational(4, 3, strides=2, kl_weight=0.1)
    >>> layer(np.ones((2, 5, 3))).shape
    TensorShape([2, 11, 4])

    Input shape:
        [batch, steps, channels].

    Output shape:
        [batch, new_steps, filters].
    """


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class Conv2DTransposeVariational(
    ConvTransposeVariational, keras.layers.Conv2DTranspose
):
    """A transposed convolution over height and width whose weights have a posterior.

    `output = activation(conv2d_transpose(input, kernel) + bias)`, `kernel, bias ~ q`

    It maps from the output shape of a convolution to its input shape, as the gradient
    of a convolution does. All positions of a row share their weights, as in
    `Conv2DVariational`. The fan-in is the mean number of inputs that an output sums
    over, `positions of the kernel / product of strides * channels`; Keras' initializers
    count as for a convolution.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.Conv2DTransposeVariational(4, 3, strides=2, kl_weight=0.1)
    >>> layer(np.ones((2, 5, 5, 3))).shape
    TensorShape([2, 11, 11, 4])

    Input shape:
        [batch, height, width, channels].

    Output shape:
        [batch, new_height, new_width, filters].
    """


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class Conv3DTransposeVariational(
    ConvTransposeVariational, keras.layers.Conv3DTranspose
):
    """A transposed convolution over volumes whose weights have a posterior.

    `output = activation(conv3d_transpose(input, kernel) + bias)`, `kernel, bias ~ q`

    See `Conv2DTransposeVariational`.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.Conv3DTransposeVariational(4, 3, strides=2, kl_weight=0.1)
    >>> layer(np.ones((2, 2, 2, 2, 3))).shape
    TensorShape([2, 5, 5, 5, 4])

    Input shape:
        [batch, depth, height, width, channels].

    Output shape:
        [batch, new_depth, new_height, new_width, filters].
    """
