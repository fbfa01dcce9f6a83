"""The layer that computes an einsum of inputs and kernel."""

from __future__ import annotations

import math
import re
import string

import keras
from keras import ops

from tfbbb.base.types import Tensor
from tfbbb.layers.linear_variational import LinearVariationalLayer


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class EinsumDenseVariational(LinearVariationalLayer, keras.layers.EinsumDense):
    """An einsum of the input with a kernel that has a posterior distribution.

    `output = activation(einsum(equation, input, kernel) + bias)`, `kernel, bias ~ q`

    `"local"` (Kingma et al. 2015) is exact if each weight multiplies one input and adds
    to one output of a row: if the kernel has all axes of input and output except the
    rows, and the bias has all axes of the output. `"auto"` decides by the equation.
    The fan-in is the product of the kernel's axes that are summed over.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.EinsumDenseVariational(
    ...     "abc,cd->abd", output_shape=(None, 4), bias_axes="d", kl_weight=0.1
    ... )
    >>> layer(np.ones((2, 5, 3))).shape
    TensorShape([2, 5, 4])

    Args:
        equation: As for `keras.layers.EinsumDense`: `"ab,bc->ac"`, `"...ab,bc->...ac"`
            or `"ab...,bc->ac..."` with any letters; the first axis is the rows.
        output_shape: Sizes of the output's axes, without the rows and the axes of an
            ellipsis; None for sizes that follow from the input.

    Input shape:
        [batch, ...], as the equation says.

    Output shape:
        [batch, ...], as the equation says.
    """

    partial_output_shape: tuple[int | None, ...]

    @property
    def use_bias(self) -> bool:
        """Whether a bias is added."""
        return self.bias_axes is not None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        # Keras' layer raises an error where equation and shapes do not fit.
        output_shape = self.compute_output_shape(input_shape)
        self._input, self._kernel_axes, self._output = _letters(
            self.equation, len(input_shape)
        )
        rows = self._input[0]
        if rows != self._output[0] or rows in self._kernel_axes:
            raise ValueError(
                "The first axis of input and output must be the rows, which the kernel "
                f"must not have. Received: equation={self.equation!r}"
            )
        # Keras takes no size of an output from the input.
        given = self.partial_output_shape
        is_left = self.equation.strip().startswith("...")
        first = len(output_shape) - len(given) if is_left else 1
        self.partial_output_shape = output_shape[first : first + len(given)]
        super().build(input_shape)
        self.partial_output_shape = given
        self._kernel_sizes = dict(
            zip(self._kernel_axes, self.kernel.shape, strict=True)
        )

    def fan_in(self, kernel_shape: tuple[int, ...]) -> int:
        sizes = zip(self._kernel_axes, kernel_shape, strict=True)
        return math.prod(size for axis, size in sizes if axis not in self._output)

    def linear(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        equation = f"{self._input},{self._kernel_axes}->{self._output}"
        if len(kernel.shape) == len(self._kernel_axes):
            return ops.einsum(equation, inputs, kernel)
        group = next(c for c in string.ascii_letters if c not in equation)
        of_inputs = self._input
        if inputs.shape[0] == 1:
            inputs = inputs[0]
        else:
            of_inputs = group + of_inputs
        return ops.einsum(
            f"{of_inputs},{group}{self._kernel_axes}->{group}{self._output}",
            inputs,
            kernel,
        )

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        # Keras exchanges the axes of an ellipsis on the left.
        shape = super().compute_output_shape(input_shape)
        inputs, _, outputs = _letters(self.equation, len(input_shape))
        sizes = dict(zip(inputs, input_shape, strict=True))
        return tuple(
            sizes.get(axis) or size for axis, size in zip(outputs, shape, strict=True)
        )

    def input_sign_shape(self, inputs: Tensor) -> tuple[int, ...]:
        return self._sign_shape(self._input)

    def output_sign_shape(self, outputs: Tensor) -> tuple[int, ...]:
        return self._sign_shape(self._output)

    def _sign_shape(self, letters: str) -> tuple[int, ...]:
        return tuple(self._kernel_sizes.get(letter, 1) for letter in letters[1:])

    def is_local_exact(self, input_rank: int, calls: int | None) -> bool:
        # Each weight uses one input and adds to one output of each row.
        own, outputs = {*self._input[1:], *self._output[1:]}, {*self._output[1:]}
        biases = outputs if self.bias_axes is None else {*self.bias_axes}
        return calls == 1 and own <= {*self._kernel_axes} and outputs <= biases


def _letters(equation: str, input_rank: int) -> tuple[str, str, str]:
    """Returns the axes of input, kernel and output, with letters for an ellipsis."""
    inputs, kernel, outputs = re.split(",|->", equation.replace(" ", ""))
    unused = [c for c in string.ascii_letters if c not in equation]
    elided = "".join(unused[: input_rank - len(inputs.strip("."))])
    return inputs.replace("...", elided), kernel, outputs.replace("...", elided)
