"""The layer that computes an einsum of inputs and kernel."""

from __future__ import annotations

import math
import re
import string
from dataclasses import dataclass
from typing import Any

import keras
from keras import ops

from tfbbb.base.types import Tensor
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


Shape = tuple[int | None, ...]

_FORMS = (
    r"[a-zA-Z]+,[a-zA-Z]+->[a-zA-Z]+",
    r"\.\.\.[a-zA-Z]+,[a-zA-Z]+->\.\.\.[a-zA-Z]+",
    r"[a-zA-Z]+\.\.\.,[a-zA-Z]+->[a-zA-Z]+\.\.\.",
)


@dataclass(frozen=True)
class EinsumEquation:
    """An equation of `EinsumDense` for inputs of a known rank, without ellipsis.

    Each part has one letter per axis; the first of `input` is the rows. `elided_left`
    counts the axes of an ellipsis on the left, rows included.
    """

    input: str
    kernel: str
    output: str
    elided_left: int = 0
    elided_right: int = 0

    @classmethod
    def parse(cls, equation: str, input_rank: int) -> EinsumEquation:
        """Returns the equation for inputs of rank `input_rank`."""
        inputs, kernel, outputs = split_equation(equation)
        elided = input_rank - len(inputs.strip("."))
        if elided < 0 or (elided > 0 and "..." not in inputs):
            raise ValueError(
                f"The equation does not fit inputs of rank {input_rank}. "
                f"Received: equation={equation!r}"
            )
        unused = [c for c in string.ascii_letters if c not in equation]
        letters = "".join(unused[:elided])
        found = cls(
            inputs.replace("...", letters),
            kernel,
            outputs.replace("...", letters),
            elided_left=elided if inputs.startswith("...") else 0,
            elided_right=elided if inputs.endswith("...") else 0,
        )
        found._check(equation)
        return found

    def _check(self, equation: str) -> None:
        for letters in (self.input, self.kernel, self.output):
            if len(set(letters)) < len(letters):
                raise ValueError(
                    f"No two axes of one tensor may have the same letter. "
                    f"Received: equation={equation!r}"
                )
        if self.input[0] != self.output[0] or self.input[0] in self.kernel:
            raise ValueError(
                "The first axis of input and output must be the rows, which the kernel "
                f"must not have. Received: equation={equation!r}"
            )

    @property
    def named(self) -> str:
        """The axes of the output other than the rows and those of an ellipsis."""
        right = len(self.output) - self.elided_right
        return self.output[max(1, self.elided_left) : right]

    def check_bias(self, bias_axes: str | None) -> None:
        """Raises ValueError if a bias has other axes than the named ones."""
        if bias_axes is not None and not (
            bias_axes and set(bias_axes) <= set(self.named)
        ):
            raise ValueError(
                f"`bias_axes` must be among the letters '{self.named}' of the output. "
                f"Received: bias_axes={bias_axes!r}"
            )

    @property
    def summed(self) -> str:
        """The axes of the kernel that are summed over."""
        return "".join(c for c in self.kernel if c not in self.output)

    def string(self) -> str:
        """Returns the equation for one kernel."""
        return f"{self.input},{self.kernel}->{self.output}"

    def grouped(self, *, shared: bool) -> str:
        """Returns the equation for a kernel per group, inputs shared or per group."""
        used = self.input + self.kernel + self.output
        group = next(c for c in string.ascii_letters if c not in used)
        inputs = self.input if shared else group + self.input
        return f"{inputs},{group}{self.kernel}->{group}{self.output}"

    def sizes(self, input_shape: Shape, given: Shape) -> dict[str, int | None]:
        """Returns the size of each axis by its letter."""
        sizes: dict[str, int | None] = dict(zip(self.input, input_shape, strict=True))
        if len(self.named) != len(given):
            raise ValueError(
                f"`output_shape` must have a size for each of the axes '{self.named}'. "
                f"Received: output_shape={given}"
            )
        for letter, size in zip(self.named, given, strict=True):
            known = sizes.get(letter)
            if size is not None and known is not None and size != known:
                raise ValueError(
                    f"Input and output do not agree in the size of the axis "
                    f"'{letter}'. Received: input_shape={tuple(input_shape)}, "
                    f"output_shape={given}"
                )
            sizes[letter] = known if size is None else size
        return sizes

    def uses_weights_once(self, bias_axes: str | None) -> bool:
        """Whether each weight uses one input and adds to one output of each row."""
        own = set(self.input[1:] + self.output[1:])
        outputs = set(self.output[1:])
        return own <= set(self.kernel) and (
            bias_axes is None or outputs <= set(bias_axes)
        )


def split_equation(equation: str) -> tuple[str, str, str]:
    """Returns the letters of input, kernel and output, with their ellipses."""
    plain = equation.replace(" ", "")
    if not any(re.fullmatch(form, plain) for form in _FORMS):
        raise ValueError(
            "`equation` must have the form 'ab,bc->ac', '...ab,bc->...ac' or "
            f"'ab...,bc->ac...'. Received: equation={equation!r}"
        )
    inputs, kernel, outputs = re.split(",|->", plain)
    return inputs, kernel, outputs
