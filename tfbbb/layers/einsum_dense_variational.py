"""The layer that computes an einsum of inputs and kernel."""

import math
from collections.abc import Sequence
from typing import Any, Unpack

import keras
from keras import ops

from tfbbb.base.types import Activation, Config, Tensor
from tfbbb.layers.einsum_equation import EinsumEquation, Shape, split_equation
from tfbbb.layers.linear_variational import KernelOptions, LinearVariationalLayer


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class EinsumDenseVariational(LinearVariationalLayer):
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

    def __init__(
        self,
        equation: str,
        output_shape: int | Sequence[int | None],
        activation: Activation = None,
        bias_axes: str | None = None,
        **options: Unpack[KernelOptions],
    ):
        super().__init__(
            activation=activation, use_bias=bias_axes is not None, **options
        )
        # As in Keras: a mask need not fit the outputs.
        self.supports_masking = False
        _, _, outputs = split_equation(equation)
        if bias_axes is not None and not (
            bias_axes and set(bias_axes) <= set(outputs.strip("."))
        ):
            raise ValueError(
                "`bias_axes` must be letters of the output. "
                f"Received: bias_axes={bias_axes!r}, equation={equation!r}"
            )
        self.equation = equation
        self.partial_output_shape = _validate_output_shape(output_shape)
        self.bias_axes = bias_axes

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self._equation, sizes = self._resolved(input_shape)
        for axes, shape in (
            ("kernel", [sizes[letter] for letter in self._equation.kernel]),
            ("bias", self._bias_shape(sizes)),
        ):
            if None in shape:
                raise ValueError(
                    f"Every axis of the {axes} must have a known size: give it in "
                    f"`output_shape` or in the input. Received: input_shape="
                    f"{tuple(input_shape)}, output_shape={self.partial_output_shape}, "
                    f"equation={self.equation!r}, bias_axes={self.bias_axes!r}"
                )
        summed = self._equation.summed
        self._kernel_sizes = {
            letter: int(sizes[letter] or 1) for letter in self._equation.kernel
        }
        given = self.kernel_initializer
        self.kernel_initializer = self._with_axes(given)
        self.add_kernel_and_bias(
            input_rank=len(input_shape),
            kernel_shape=tuple(self._kernel_sizes.values()),
            bias_shape=self._bias_shape(sizes),
            fan_in=math.prod(self._kernel_sizes[letter] for letter in summed),
        )
        self.kernel_initializer = given
        self.input_spec = keras.layers.InputSpec(ndim=len(input_shape))

    def _resolved(self, input_shape: Shape) -> tuple[EinsumEquation, dict[str, Any]]:
        equation = EinsumEquation.parse(self.equation, len(input_shape))
        return equation, equation.sizes(input_shape, self.partial_output_shape)

    def _bias_shape(self, sizes: dict[str, Any]) -> tuple[Any, ...]:
        if self.bias_axes is None:
            return ()
        if self._equation.row in self.bias_axes:
            raise ValueError(
                "The bias cannot have the axis of the rows. "
                f"Received: bias_axes={self.bias_axes!r}, equation={self.equation!r}"
            )
        return self._equation.bias_shape(self.bias_axes, sizes)

    def _with_axes(self, initializer: keras.Initializer) -> keras.Initializer:
        """Returns the initializer with the axes that count as inputs and outputs."""
        scales = isinstance(initializer, keras.initializers.VarianceScaling)
        if not scales or None not in (initializer.input_axes, initializer.output_axes):
            return initializer
        summed = [c in self._equation.summed for c in self._equation.kernel]
        return type(initializer).from_config(
            {
                **initializer.get_config(),
                "seed": initializer.seed,
                "input_axes": [i for i, is_input in enumerate(summed) if is_input],
                "output_axes": [i for i, is_input in enumerate(summed) if not is_input],
            }
        )

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

    def get_config(self) -> Config:
        config = super().get_config()
        del config["use_bias"]
        return {
            **config,
            "equation": self.equation,
            "output_shape": self.partial_output_shape,
            "bias_axes": self.bias_axes,
        }


def _validate_output_shape(
    output_shape: int | Sequence[int | None],
) -> tuple[int | None, ...]:
    sizes = (output_shape,) if isinstance(output_shape, int) else tuple(output_shape)
    if not all(
        size is None
        or (isinstance(size, int) and not isinstance(size, bool) and size > 0)
        for size in sizes
    ):
        raise ValueError(
            "`output_shape` must be one or several positive integers, with None for "
            f"sizes that follow from the input. Received: output_shape={output_shape!r}"
        )
    return sizes
