"""The base class of layers that use one kernel for all positions of a row."""

from __future__ import annotations

import tensorflow as tf
from keras import ops

from tfbbb.base.types import Tensor
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
        shape = self.compute_output_shape(tuple(inputs.shape[1:]))
        spec = tf.TensorSpec(shape, kernel.dtype)
        # Separate convolutions are several times as fast as a product of patches,
        # which would need memory for the patches.
        if inputs.shape[0] == 1:
            return tf.map_fn(
                lambda one: self.convolve(inputs[0], one),
                kernel,
                fn_output_signature=spec,
            )
        return tf.map_fn(
            lambda pair: self.convolve(*pair),
            (inputs, kernel),
            fn_output_signature=spec,
        )

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
