"""The base class of layers that are linear in one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras import ops

from tfbbb.base.call_context import current_call
from tfbbb.base.types import (
    Activation,
    Config,
    Constraint,
    Initializer,
    Regularizer,
    Tensor,
)
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.layers.variational import VariationalLayer, VariationalOptions


class LinearOptions(VariationalOptions, total=False):
    """The options of layers that are linear in one kernel, beside the kernel's own."""

    bias_initializer: Initializer
    bias_regularizer: Regularizer
    activity_regularizer: Regularizer
    bias_constraint: Constraint


class KernelOptions(LinearOptions, total=False):
    """The options of layers that are linear in one kernel."""

    kernel_initializer: Initializer
    kernel_regularizer: Regularizer
    kernel_constraint: Constraint


class LinearVariationalLayer(VariationalLayer):
    """Base of the layers that compute `activation(linear(inputs, kernel) + bias)`.

    A subclass defines the linear map (`linear`) and creates its weights in `build` by
    `add_kernel_and_bias`; this class does the rest. Further arguments are those of
    `VariationalLayer`.

    Args:
        activation: Keras activation, by name or as a function.
        use_bias: Whether a bias is added.
        kernel_initializer: Keras initializer of the kernel's posterior mean.
        bias_initializer: Keras initializer of the bias' posterior mean.
        kernel_regularizer: Keras regularizer of the kernel's posterior mean.
        bias_regularizer: Keras regularizer of the bias' posterior mean.
        activity_regularizer: Keras regularizer of the output.
        kernel_constraint: Keras constraint on the kernel's posterior mean.
        bias_constraint: Keras constraint on the bias' posterior mean.
    """

    kernel_initializer: Callable[..., Tensor]

    def __init__(
        self,
        *,
        activation: Activation = None,
        use_bias: bool = True,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        kernel_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        **options: Any,
    ):
        self.use_bias = use_bias
        super().__init__(**options)
        self.set_objects(
            activation=activation,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
        )
        self.check_penalties(self.members)

    def add_kernel_and_bias(
        self,
        *,
        input_rank: int,
        kernel_shape: tuple[int, ...],
        bias_shape: tuple[int, ...],
        fan_in: int,
    ) -> None:
        """Creates `kernel`, `bias` and the weight of the KL divergence."""
        self.input_rank = input_rank
        self.kernel = self.add_variational_weight(
            "kernel",
            kernel_shape,
            fan_in=fan_in,
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.bias: VariationalWeight | None = None
        if self.use_bias:
            self.bias = self.add_variational_weight(
                "bias",
                bias_shape,
                fan_in=1,
                initializer=self.bias_initializer,
                is_bias=True,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        self.add_kl_weight()

    def linear(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        """Returns the part of the outputs that is linear in `kernel`.

        Args:
            inputs: [n, ...]; with a kernel for each of several groups [groups, n,
                ...] or, where all groups have the same inputs, [1, n, ...].
            kernel: A kernel, or [groups, *kernel_shape].

        Returns:
            [n, ...], or [groups, n, ...].
        """
        raise NotImplementedError

    def linear_in_squares(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        """Returns `linear` of the squared inputs: the variance, if `kernel` is one."""
        return self.linear(ops.square(inputs), kernel)

    def broadcast_bias(self, bias: Tensor, output_rank: int) -> Tensor:
        """Returns a bias in a shape that broadcasts against outputs of `linear`.

        Args:
            bias: A bias, or [groups, *bias_shape].
            output_rank: Rank of the outputs: [n, ...], or [groups, n, ...].
        """
        assert self.bias is not None
        if len(bias.shape) == len(self.bias.shape):
            return bias
        # A group has one bias for all of its rows and positions.
        ones = [1] * (output_rank - len(bias.shape))
        return ops.reshape(bias, (-1, *ones, *self.bias.shape))

    def cast_inputs(self, inputs: Tensor) -> Tensor:
        """Returns the inputs in the dtype that the layer computes in."""
        return ops.cast(inputs, self.compute_dtype)

    def input_sign_shape(self, inputs: Tensor) -> tuple[int, ...] | None:
        """Returns the shape of a row's random signs of inputs for `flipout`.

        Inputs of the same weight share one sign; the shape broadcasts against a row.
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

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "use_bias": self.use_bias,
        }
