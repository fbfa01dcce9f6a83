"""The base class of layers that are linear in one kernel."""

from __future__ import annotations

from typing import ClassVar

from keras import ops

from tfbbb.base.call_context import current_call
from tfbbb.base.types import Tensor
from tfbbb.layers.variational import VariationalLayer


class LinearVariationalLayer(VariationalLayer):
    """Base of the layers that compute `activation(linear(inputs, kernel) + bias)`.

    A subclass derives from a layer of Keras as well, which has the arguments, creates
    the weights and knows the shapes; it defines the linear map for any kernel, or for
    one kernel of each of several groups of rows (`linear`).
    """

    posterior_weights: ClassVar = {"kernel": "kernel", "bias": "bias"}

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.input_rank = len(input_shape)
        super().build(input_shape)
        self.add_kl_weight()

    def linear(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        """Returns the part of the outputs that is linear in `kernel`, [n, ...].

        With kernels of several groups, [groups, *kernel_shape], inputs are [groups, n,
        ...], or [1, n, ...] where all groups share them, and outputs [groups, n, ...].
        """
        raise NotImplementedError

    def linear_in_squares(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        """Returns `linear` of the squared inputs: the variance, if `kernel` is one."""
        return self.linear(ops.square(inputs), kernel)

    def broadcast_bias(self, bias: Tensor, output_rank: int) -> Tensor:
        """Returns a bias, or one per group, that broadcasts against `linear`."""
        if len(bias.shape) == len(self.bias.shape):
            return bias
        # A group has one bias for all of its rows and positions.
        ones = [1] * (output_rank - len(bias.shape))
        return ops.reshape(bias, (-1, *ones, *self.bias.shape))

    def cast_inputs(self, inputs: Tensor) -> Tensor:
        """Returns the inputs in the dtype that the layer computes in."""
        return ops.cast(inputs, self.compute_dtype)

    def input_sign_shape(self, inputs: Tensor) -> tuple[int, ...] | None:
        """Returns the shape of a row's signs for `flipout`, one for all of a weight.

        None for inputs without a sign (indices).
        """
        return (*[1] * (len(inputs.shape) - 2), inputs.shape[-1])

    def output_sign_shape(self, outputs: Tensor) -> tuple[int, ...]:
        """Returns the shape of a row's random signs of outputs for `flipout`."""
        return (*[1] * (len(outputs.shape) - 2), outputs.shape[-1])

    def is_local_exact(self, input_rank: int, calls: int | None) -> bool:
        """Whether drawing pre-activations is exact: a weight is used once per row."""
        raise NotImplementedError

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        draws = current_call().layer_draws
        if draws is not None:
            return self.activation(draws.outputs(self, inputs))
        self.begin_call()
        with self.weights_read_once():
            outputs, draws = self.estimator(self, inputs)
            self.count_kl(draws, training)
        return self.activation(outputs)
