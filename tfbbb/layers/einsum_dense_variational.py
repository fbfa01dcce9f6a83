"""The layer that computes an einsum of inputs and kernel."""

import math
from typing import Any

import keras
from keras import ops

from tfbbb.base.types import Tensor
from tfbbb.layers.einsum_equation import EinsumEquation, Shape
from tfbbb.layers.linear_variational import LinearVariationalLayer


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class EinsumDenseVariational(LinearVariationalLayer, keras.layers.EinsumDense):
    """An einsum of the input with a kernel that has a posterior distribution.

    `output = activation(einsum(equation, input, kernel) + bias)`, `kernel, bias ~ q`

    With `"flipout"` a row has one sign for each element of the axes that input and
    kernel share, and one for each element of the axes that output and kernel share.
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
        bias_axes: Letters of the output's axes that the bias has; None for no bias.

    Input shape:
        [batch, ...], as the equation says.

    Output shape:
        [batch, ...], as the equation says.

    Raises:
        ValueError: The equation has another form, a letter twice in one tensor, or a
            letter in the kernel alone; sizes do not agree or are unknown; or as for
            `DenseVariational`.
    """

    partial_output_shape: Shape

    @property
    def use_bias(self) -> bool:
        """Whether a bias is added."""
        return self.bias_axes is not None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self._equation, sizes = self._resolved(input_shape)
        self._equation.check_bias(self.bias_axes)
        # Keras takes no size of an output from the input.
        given = self.partial_output_shape
        self.partial_output_shape = tuple(sizes[c] for c in self._equation.named)
        super().build(input_shape)
        self.partial_output_shape = given
        self._kernel_sizes = dict(
            zip(self._equation.kernel, self.kernel.shape, strict=True)
        )

    def _resolved(self, input_shape: Shape) -> tuple[EinsumEquation, dict[str, Any]]:
        equation = EinsumEquation.parse(self.equation, len(input_shape))
        return equation, equation.sizes(input_shape, self.partial_output_shape)

    def fan_in(self, kernel_shape: tuple[int, ...]) -> int:
        sizes = dict(zip(self._equation.kernel, kernel_shape, strict=True))
        return math.prod(sizes[letter] for letter in self._equation.summed)

    def linear(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        if len(kernel.shape) == len(self._equation.kernel):
            return ops.einsum(self._equation.string(), inputs, kernel)
        shared = inputs.shape[0] == 1
        equation = self._equation.grouped(shared=shared)
        return ops.einsum(equation, inputs[0] if shared else inputs, kernel)

    def input_sign_shape(self, inputs: Tensor) -> tuple[int, ...]:
        return self._sign_shape(self._equation.input)

    def output_sign_shape(self, outputs: Tensor) -> tuple[int, ...]:
        return self._sign_shape(self._equation.output)

    def _sign_shape(self, letters: str) -> tuple[int, ...]:
        return tuple(self._kernel_sizes.get(letter, 1) for letter in letters[1:])

    def is_local_exact(self, input_rank: int, calls: int | None) -> bool:
        return calls == 1 and self._equation.uses_weights_once(self.bias_axes)

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        equation, sizes = self._resolved(input_shape)
        return tuple(sizes[letter] for letter in equation.output)
