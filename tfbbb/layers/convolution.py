"""The base class of layers that use one kernel for all positions of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from tfbbb.base.batch_layout import dimensions
from tfbbb.base.types import Config, DType, Shape, Tensor
from tfbbb.layers.linear_variational import LinearVariationalLayer

Size = int | Sequence[int]


class Convolution(LinearVariationalLayer):
    """Base of the convolutions, of one, two or three dimensions.

    A subclass defines how one kernel acts (`convolve`) and the shapes of kernel and
    bias; this class does the rest. It validates the arguments as the layers of Keras
    do.

    All positions of a row share its weights under every estimator but `local`:
    `flipout` has one sign per row and channel. Under `local` each position has the mean
    and variance that q implies, but independent noise, as if each position had its own
    kernel. This is an approximation, which is used only if you name it.

    Attributes:
        rank: Number of dimensions that the kernel moves in; a subclass sets it.

    Args:
        kernel_size: Size of the kernel, one integer, or one for each dimension.
        strides: Steps of the kernel, one integer, or one for each dimension.
        padding: `"valid"` (none) or `"same"`.
        data_format: `"channels_last"` or `"channels_first"`; by default Keras' own.
        dilation_rate: Distance between the inputs that neighbours in the kernel meet,
            one integer, or one for each dimension.
    """

    rank: int
    paddings: tuple[str, ...] = ("valid", "same")

    def __init__(
        self,
        *,
        kernel_size: Size,
        strides: Size,
        padding: str,
        data_format: str | None,
        dilation_rate: Size,
        **options: Any,
    ):
        super().__init__(**options)
        # As in Keras: a mask of positions does not fit the outputs.
        self.supports_masking = False
        self.kernel_size = self._checked("kernel_size", kernel_size)
        self.strides = self._checked("strides", strides)
        self.dilation_rate = self._checked("dilation_rate", dilation_rate)
        self.padding = self._validate_padding(padding)
        self.data_format = _validate_data_format(data_format)
        self.input_spec = keras.layers.InputSpec(ndim=self.rank + 2)

    def _checked(self, name: str, size: Size, least: int = 1) -> tuple[int, ...]:
        sizes = (size,) * self.rank if isinstance(size, int) else tuple(size)
        if len(sizes) != self.rank or not all(
            isinstance(each, int) and not isinstance(each, bool) and each >= least
            for each in sizes
        ):
            raise ValueError(
                f"`{name}` must be an integer of at least {least}, or {self.rank} of "
                f"them. Received: {name}={size!r}"
            )
        return sizes

    def _validate_padding(self, padding: str) -> str:
        lower = padding.lower() if isinstance(padding, str) else padding
        if lower not in self.paddings:
            names = ", ".join(f"'{name}'" for name in self.paddings)
            raise ValueError(
                f"`padding` must be one of {names}. Received: padding={padding!r}"
            )
        return lower

    def check_strides_or_dilation(self) -> None:
        """Raises ValueError if the layer has both strides and dilation."""
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(
                "`strides > 1` cannot be combined with `dilation_rate > 1`. "
                f"Received: strides={self.strides}, "
                f"dilation_rate={self.dilation_rate}"
            )

    @property
    def channel_axis(self) -> int:
        """Axis of the channels, of inputs and outputs."""
        return -1 if self.data_format == "channels_last" else 1

    def channels_of(self, input_shape: tuple[int | None, ...]) -> int:
        """Returns the number of input channels, or raises ValueError if unknown."""
        channels = input_shape[self.channel_axis]
        if channels is None:
            raise ValueError(
                f"The number of channels of the input of '{self.name}' must be known. "
                f"Received: input_shape={tuple(input_shape)}"
            )
        return channels

    def build_convolution(
        self,
        input_shape: tuple[int | None, ...],
        kernel_shape: tuple[int, ...],
        bias_size: int,
        fan_in: int,
    ) -> None:
        """Creates the weights; raises ValueError if the outputs would be empty."""
        self.compute_output_shape(input_shape)
        self.add_kernel_and_bias(
            input_rank=self.rank + 2,
            kernel_shape=kernel_shape,
            bias_shape=(bias_size,),
            fan_in=fan_in,
        )
        axes = {self.channel_axis: self.channels_of(input_shape)}
        self.input_spec = keras.layers.InputSpec(ndim=self.rank + 2, axes=axes)

    def convolve(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        """Returns the outputs [n, ...] of one kernel for inputs [n, ...]."""
        raise NotImplementedError

    def linear(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        if len(kernel.shape) == self.rank + 2:
            return self.convolve(inputs, kernel)
        if inputs.shape[0] == 1:
            return self.convolve_shared(inputs[0], kernel)
        return self.convolve_each(inputs, kernel)

    @property
    def takes_any_number_of_channels(self) -> bool:
        """Whether a convolution can have an unknown number of groups of channels.

        TensorFlow must know the shape of a dilated kernel when it builds a graph.
        """
        return max(self.dilation_rate) == 1

    def convolve_shared(self, inputs: Tensor, kernels: Tensor) -> Tensor:
        """Returns the outputs [groups, n, ...] of many kernels for the same inputs."""
        return tf.map_fn(
            lambda kernel: self.convolve(inputs, kernel),
            kernels,
            fn_output_signature=self._output_spec(inputs.shape, kernels.dtype),
        )

    def convolve_each(self, inputs: Tensor, kernels: Tensor) -> Tensor:
        """Returns the outputs [groups, n, ...] of one kernel for each group of inputs.

        Separate convolutions are several times as fast as a product of patches, which
        would need memory for the patches.
        """
        return tf.map_fn(
            lambda pair: self.convolve(*pair),
            (inputs, kernels),
            fn_output_signature=self._output_spec(inputs.shape[1:], kernels.dtype),
        )

    def _output_spec(self, input_shape: Shape, dtype: DType) -> tf.TensorSpec:
        return tf.TensorSpec(self.compute_output_shape(tuple(input_shape)), dtype)

    def broadcast_bias(self, bias: Tensor, output_rank: int) -> Tensor:
        bias = super().broadcast_bias(bias, output_rank)
        if self.data_format == "channels_last":
            return bias
        # [groups, 1, filters, 1, ...], or [filters, 1, ...].
        leading = [] if len(bias.shape) == 1 else [-1, 1]
        ones = [1] * self.rank
        return ops.reshape(bias, (*leading, bias.shape[-1], *ones))

    def input_sign_shape(self, inputs: Tensor) -> tuple[int, ...]:
        return self._sign_shape(inputs.shape[self.channel_axis])

    def output_sign_shape(self, outputs: Tensor) -> tuple[int, ...]:
        return self._sign_shape(outputs.shape[self.channel_axis])

    def _sign_shape(self, channels: int) -> tuple[int, ...]:
        ones = [1] * self.rank
        if self.data_format == "channels_last":
            return (*ones, channels)
        return (channels, *ones)

    def is_local_exact(self, input_rank: int, calls: int | None) -> bool:
        return False

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "kernel_size": self.kernel_size,
            "strides": self.strides,
            "padding": self.padding,
            "data_format": self.data_format,
            "dilation_rate": self.dilation_rate,
        }


def channels_apart(
    outputs: Tensor, groups: Any, *, outer: int, channels: int, channel_axis: int
) -> Tensor:
    """Returns outputs [n, ...] with channels of several groups as [groups, n, ...].

    Args:
        outputs: Its channels are in the order [outer, groups, channels / outer].
        groups: Number of groups.
        outer: Number of parts of the channels that hold all groups each.
        channels: Number of channels of one group.
        channel_axis: Axis of the channels.
    """
    rank = len(outputs.shape)
    axis = channel_axis % rank
    sizes = dimensions(outputs, 0)
    before, after = sizes[:axis], sizes[axis + 1 :]
    split = [*before, outer, groups, channels // outer, *after]
    in_front = tf.transpose(
        tf.reshape(outputs, split),
        [axis + 1, *range(axis + 1), *range(axis + 2, rank + 2)],
    )
    return tf.reshape(in_front, [groups, *before, channels, *after])


def _validate_data_format(data_format: str | None) -> str:
    if data_format is None:
        return keras.config.image_data_format()
    lower = data_format.lower() if isinstance(data_format, str) else data_format
    if lower not in ("channels_last", "channels_first"):
        raise ValueError(
            "`data_format` must be 'channels_last' or 'channels_first'. "
            f"Received: data_format={data_format!r}"
        )
    return lower
