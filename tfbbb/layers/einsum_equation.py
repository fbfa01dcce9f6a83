"""The letters of an einsum between inputs and a kernel."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass

Shape = tuple[int | None, ...]

_FORMS = (
    r"[a-zA-Z]+,[a-zA-Z]+->[a-zA-Z]+",
    r"\.\.\.[a-zA-Z]+,[a-zA-Z]+->\.\.\.[a-zA-Z]+",
    r"[a-zA-Z]+\.\.\.,[a-zA-Z]+->[a-zA-Z]+\.\.\.",
)


@dataclass(frozen=True)
class EinsumEquation:
    """An equation of `EinsumDense` for inputs of a known rank, without ellipsis.

    Attributes:
        input: One letter for each axis of the inputs; the first is the rows.
        kernel: One letter for each axis of the kernel.
        output: One letter for each axis of the outputs.
        elided_right: Number of axes in an ellipsis on the right.
        elided_left: Number of axes in an ellipsis on the left, rows included.
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
