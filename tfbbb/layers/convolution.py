"""The base class of layers that use one kernel for all positions of a row."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from keras import ops

from tfbbb.base.batch_layout import dimensions
from tfbbb.base.types import DType, Shape, Tensor
from tfbbb.layers.linear_variational import LinearVariationalLayer


class Convolution(LinearVariationalLayer):
    """Base of the convolutions, of one, two or three dimensions.

    A subclass derives from a convolution of Keras as well, and defines how one kernel
    acts (`convolve`).

    All positions of a row share its weights under every estimator but `local`:
    `flipout` has one sign per row and channel. Under `local` each position has the mean
    and variance that q implies, but independent noise, as if each position had its own
    kernel. This is an approximation, which is used only if you name it.
    """

    rank: int

    @property
    def channel_axis(self) -> int:
        """Axis of the channels, of inputs and outputs."""
        return -1 if self.data_format == "channels_last" else 1

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        if input_shape[self.channel_axis] is None:
            raise ValueError(
                f"The number of channels of the input of '{self.name}' must be known. "
                f"Received: input_shape={tuple(input_shape)}"
            )
        super().build(input_shape)

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


def channels_apart(
    outputs: Tensor, groups: Any, *, outer: int, channels: int, channel_axis: int
) -> Tensor:
    """Returns outputs [n, ...] of channels of groups as [groups, n, ..., channels].

    The channels are in the order [outer, groups, channels / outer].
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
