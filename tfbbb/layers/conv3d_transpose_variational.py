"""The transposed convolution of three dimensions."""

from typing import Any

import keras

from tfbbb.base.types import (
    Activation,
    Constraint,
    Initializer,
    Regularizer,
)
from tfbbb.layers.conv_transpose_variational import ConvTransposeVariational
from tfbbb.layers.convolution import Size


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class Conv3DTransposeVariational(ConvTransposeVariational):
    """A transposed convolution over volumes whose weights have a posterior.

    `output = activation(conv3d_transpose(input, kernel) + bias)`, `kernel, bias ~ q`

    It maps from the output shape of a convolution to its input shape, as the gradient
    of a convolution does. All positions of a row share their weights, as in
    `Conv2DVariational`.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.Conv3DTransposeVariational(4, 3, strides=2, kl_weight=0.1)
    >>> layer(np.ones((2, 2, 2, 2, 3))).shape
    TensorShape([2, 5, 5, 5, 4])

    Args:
        filters: Number of output channels.
        kernel_size: Size of the kernel, one integer or three.
        strides: Steps of the kernel in the output, one integer or three.
        padding: `"valid"` or `"same"`.
        data_format: `"channels_last"` or `"channels_first"`; by default Keras' own.
        output_padding: Number of positions added to the output, less than `strides`;
            one integer or three.
        dilation_rate: Distance between the outputs that neighbours in the kernel meet,
            one integer or three.
        activation: Keras activation, by name or as a function.
        use_bias: Whether a bias is added, one for each filter.
        kernel_initializer: Keras initializer of the kernel's posterior mean.
        bias_initializer: Keras initializer of the bias' posterior mean.
        kernel_regularizer: Keras regularizer of the kernel's posterior mean.
        bias_regularizer: Keras regularizer of the bias' posterior mean.
        activity_regularizer: Keras regularizer of the output.
        kernel_constraint: Keras constraint on the kernel's posterior mean.
        bias_constraint: Keras constraint on the bias' posterior mean.
        **options: As for `Conv2DVariational`. The fan-in is the mean number of inputs
            that an output sums over, `positions of the kernel / product of strides *
            channels`; Keras' initializers count as for a convolution.

    Input shape:
        [batch, depth, height, width, channels], or [batch, channels, depth, height,
        width] with `data_format="channels_first"`.

    Output shape:
        [batch, new_depth, new_height, new_width, filters], or
        [batch, filters, new_depth, new_height, new_width].

    Raises:
        ValueError: As for `Conv2DVariational`; or `output_padding` is not smaller than
            `strides`.
    """

    rank = 3

    def __init__(
        self,
        filters: int,
        kernel_size: Size,
        strides: Size = 1,
        padding: str = "valid",
        data_format: str | None = None,
        output_padding: Size | None = None,
        dilation_rate: Size = 1,
        activation: Activation = None,
        use_bias: bool = True,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        activity_regularizer: Regularizer = None,
        kernel_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        **options: Any,
    ):
        # In three dimensions Keras has these two the other way round.
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            output_padding,
            data_format,
            dilation_rate,
            activation,
            use_bias,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            activity_regularizer,
            kernel_constraint,
            bias_constraint,
            **options,
        )
