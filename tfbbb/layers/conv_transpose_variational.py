"""The base class of transposed convolutions in one, two and three dimensions."""

import math
from typing import Any

import keras
from keras import ops

from tfbbb.base.numbers import positive_integer
from tfbbb.base.types import (
    Activation,
    Constraint,
    Initializer,
    Regularizer,
    Tensor,
)
from tfbbb.layers.convolution import Convolution, Size


class ConvTransposeVariational(Convolution):
    """Base of the transposed convolutions.

    Args:
        filters: Number of output channels.
        kernel_size: Size of the kernel.
        strides: Steps of the kernel, in the output.
        padding: `"valid"` or `"same"`.
        output_padding: Sizes by which the output grows, smaller than `strides`.
        data_format: `"channels_last"` or `"channels_first"`.
        dilation_rate: Distance between the outputs that neighbours in the kernel meet.
        activation: Keras activation, by name or as a function.
        use_bias: Whether a bias is added, one for each output channel.
        kernel_initializer: Keras initializer of the kernel's posterior mean.
        bias_initializer: Keras initializer of the bias' posterior mean.
        kernel_regularizer: Keras regularizer of the kernel's posterior mean.
        bias_regularizer: Keras regularizer of the bias' posterior mean.
        activity_regularizer: Keras regularizer of the output.
        kernel_constraint: Keras constraint on the kernel's posterior mean.
        bias_constraint: Keras constraint on the bias' posterior mean.
        **options: As for `VariationalLayer`.
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
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        activity_regularizer: Regularizer = None,
        kernel_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        **options: Any,
    ):
        super().__init__(
            kernel_size=kernel_size,
            strides=strides,
            padding=padding,
            data_format=data_format,
            dilation_rate=dilation_rate,
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
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

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "filters": self.filters,
            "output_padding": self.output_padding,
        }
