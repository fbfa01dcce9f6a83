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
        for letter in self.kernel:
            if letter not in self.input + self.output:
                raise ValueError(
                    f"The axis '{letter}' of the kernel is neither one of the input "
                    f"nor one of the output. Received: equation={equation!r}"
                )
        for letter in self.output:
            if letter not in self.input + self.kernel:
                raise ValueError(
                    f"The axis '{letter}' of the output is neither one of the input "
                    f"nor one of the kernel. Received: equation={equation!r}"
                )

    @property
    def row(self) -> str:
        """The letter of the rows."""
        return self.input[0]

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
        right = len(self.output) - self.elided_right
        named = self.output[max(1, self.elided_left) : right]
        if len(named) != len(given):
            raise ValueError(
                f"`output_shape` must have a size for each of the axes '{named}'. "
                f"Received: output_shape={given}"
            )
        for letter, size in zip(named, given, strict=True):
            known = sizes.get(letter)
            if size is not None and known is not None and size != known:
                raise ValueError(
                    f"Input and output do not agree in the size of the axis "
                    f"'{letter}'. Received: input_shape={tuple(input_shape)}, "
                    f"output_shape={given}"
                )
            sizes[letter] = known if size is None else size
        return sizes

    def bias_shape(
        self, bias_axes: str, sizes: dict[str, int | None]
    ) -> tuple[int | None, ...]:
        """Returns a shape that broadcasts against the outputs along `bias_axes`."""
        first = min(map(self.output.index, bias_axes))
        return tuple(
            sizes[letter] if letter in bias_axes else 1
            for letter in self.output[first:]
        )

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
