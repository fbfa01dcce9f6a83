"""Transposed convolutions in one, two and three dimensions."""

import math
from typing import Unpack

import keras
from keras import ops

from tfbbb.base.numbers import positive_integer
from tfbbb.base.types import Activation, Config, Tensor
from tfbbb.layers.convolution import Convolution, Size
from tfbbb.layers.linear_variational import KernelOptions


class ConvTransposeVariational(Convolution):
    """Base of the transposed convolutions.

    Args:
        filters: Number of output channels.
        strides: Steps of the kernel in the output, one integer, or one for each
            dimension.
        output_padding: Number of positions added to the output, less than `strides`;
            one integer, or one for each dimension.
        dilation_rate: Distance between the outputs that neighbours in the kernel meet,
            one integer, or one for each dimension.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Size,
        strides: Size = 1,
        padding: str = "valid",
        output_padding: Size | None = None,
        data_format: str | None = None,
        dilation_rate: Size = 1,
        activation: Activation = None,
        use_bias: bool = True,
        **options: Unpack[KernelOptions],
    ):
        super().__init__(
            kernel_size=kernel_size,
            strides=strides,
            padding=padding,
            data_format=data_format,
            dilation_rate=dilation_rate,
            activation=activation,
            use_bias=use_bias,
            **options,
        )
        self.filters = positive_integer("filters", filters)
        self.check_strides_or_dilation()
        self.output_padding = self._validate_output_padding(output_padding)

    def _validate_output_padding(self, size: Size | None) -> tuple[int, ...] | None:
        if size is None:
            return None
        sizes = self._checked("output_padding", size, least=0)
        if any(map(int.__ge__, sizes, self.strides)):
            raise ValueError(
                "`output_padding` must be smaller than `strides`. "
                f"Received: output_padding={sizes}, strides={self.strides}"
            )
        return sizes

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        channels = self.channels_of(input_shape)
        # An output uses only every `strides`-th position of the kernel.
        met = math.prod(self.kernel_size) / math.prod(self.strides)
        self.build_convolution(
            input_shape,
            kernel_shape=(*self.kernel_size, self.filters, channels),
            bias_size=self.filters,
            fan_in=max(1, round(met * channels)),
        )

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

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        channels = self.channels_of(input_shape)
        kernel = keras.KerasTensor((*self.kernel_size, self.filters, channels))
        return self.convolve(keras.KerasTensor(input_shape), kernel).shape

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "filters": self.filters,
            "output_padding": self.output_padding,
        }


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class Conv1DTransposeVariational(ConvTransposeVariational):
    """A transposed convolution over sequences whose weights have a posterior.

    `output = activation(conv1d_transpose(input, kernel) + bias)`, `kernel, bias ~ q`

    It maps from the output shape of a convolution to its input shape, as the gradient
    of a convolution does. All positions of a row share their weights, as in
    `Conv2DVariational`. The fan-in is the mean number of inputs that an output sums
    over, `positions of the kernel / product of strides * channels`; Keras' initializers
    count as for a convolution.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.Conv1DTransposeVariational(4, 3, strides=2, kl_weight=0.1)
    >>> layer(np.ones((2, 5, 3))).shape
    TensorShape([2, 11, 4])

    Args:
        filters: Number of output channels.

    Input shape:
        [batch, steps, channels], or [batch, channels, steps]
        with `data_format="channels_first"`.

    Output shape:
        [batch, new_steps, filters], or
        [batch, filters, new_steps].

    Raises:
        ValueError: As for `Conv2DVariational`; or `output_padding` is not smaller than
            `strides`.
    """

    rank = 1


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class Conv2DTransposeVariational(ConvTransposeVariational):
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

    Args:
        filters: Number of output channels.

    Input shape:
        [batch, height, width, channels], or [batch, channels, height, width]
        with `data_format="channels_first"`.

    Output shape:
        [batch, new_height, new_width, filters], or
        [batch, filters, new_height, new_width].

    Raises:
        ValueError: As for `Conv2DVariational`; or `output_padding` is not smaller than
            `strides`.
    """

    rank = 2


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class Conv3DTransposeVariational(ConvTransposeVariational):
    """A transposed convolution over volumes whose weights have a posterior.

    `output = activation(conv3d_transpose(input, kernel) + bias)`, `kernel, bias ~ q`

    It maps from the output shape of a convolution to its input shape, as the gradient
    of a convolution does. All positions of a row share their weights, as in
    `Conv2DVariational`. The fan-in is the mean number of inputs that an output sums
    over, `positions of the kernel / product of strides * channels`; Keras' initializers
    count as for a convolution.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.Conv3DTransposeVariational(4, 3, strides=2, kl_weight=0.1)
    >>> layer(np.ones((2, 2, 2, 2, 3))).shape
    TensorShape([2, 5, 5, 5, 4])

    Args:
        filters: Number of output channels.

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
        **options: Unpack[KernelOptions],
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
            **options,
        )
