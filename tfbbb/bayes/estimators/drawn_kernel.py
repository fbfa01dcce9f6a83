"""Kernels drawn from q, which may differ between the rows of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tfbbb.base.lazy import ops
from tfbbb.base.types import ArrayLike, Tensor


def matmul(inputs: Tensor, kernel: Tensor) -> Tensor:
    """Returns `inputs @ kernel`, each [n, ...] or [groups, n, ...]."""
    if len(kernel.shape) == 3:
        between = [1] * (len(inputs.shape) - 3)
        kernel = ops.reshape(kernel, (-1, *between, *kernel.shape[1:]))
    return ops.matmul(inputs, kernel)


class GroupedKernel:
    """One kernel for each group of rows, [groups, *shape], or one for all, [*shape].

    `layout.split` returns a batch [n, ...] as [groups, n / groups, ...], if there are
    groups, and `layout.merge` reverses it: see `BatchLayout`.
    """

    def __init__(
        self,
        values: ArrayLike,
        layout: Any,
        linear: Callable[[Tensor, Tensor], Tensor] = matmul,
    ):
        self.values = values
        self.layout = layout
        self.linear = linear

    def product(self, inputs: Tensor) -> Tensor:
        """Returns `inputs_n @ kernel_n` for every row n."""
        outputs = self.linear(self.layout.split(inputs), self.values)
        return self.layout.merge(outputs, ops.shape(inputs)[0])

    def columns(self, first: int, last: int) -> GroupedKernel:
        """Returns the kernel of the output units `first` to `last` alone."""
        return GroupedKernel(self.values[..., first:last], self.layout, self.linear)


class FlippedKernel:
    """A kernel for each row n: `mean + delta * outer(s_n, r_n)`, by signs s and r."""

    def __init__(
        self,
        mean: GroupedKernel,
        delta: GroupedKernel,
        input_signs: Tensor,
        output_signs: Tensor,
    ):
        self.mean = mean
        self.delta = delta
        self.input_signs = input_signs
        self.output_signs = output_signs

    def product(self, inputs: Tensor) -> Tensor:
        """Returns `inputs_n @ kernel_n` for every row n."""
        rank = len(inputs.shape)
        return self.mean.product(inputs) + flipped_product(
            self.delta,
            inputs,
            _for_all_positions(self.input_signs, rank),
            _for_all_positions(self.output_signs, rank),
        )

    def columns(self, first: int, last: int) -> FlippedKernel:
        """Returns the kernel of the output units `first` to `last` alone."""
        return FlippedKernel(
            self.mean.columns(first, last),
            self.delta.columns(first, last),
            self.input_signs,
            self.output_signs[:, first:last],
        )


DrawnKernel: TypeAlias = GroupedKernel | FlippedKernel


def flipped_product(
    delta: GroupedKernel, inputs: Tensor, input_signs: Tensor, output_signs: Tensor
) -> Tensor:
    """Returns `((inputs_n * s_n) @ delta) * r_n` for every row n; s may be None."""
    flipped = inputs if input_signs is None else inputs * input_signs
    return delta.product(flipped) * output_signs


def _for_all_positions(signs: Tensor, rank: int) -> Tensor:
    return ops.reshape(signs, (-1, *[1] * (rank - 2), signs.shape[-1]))
