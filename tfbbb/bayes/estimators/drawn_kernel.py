"""Kernels drawn from q, which may differ between the rows of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tfbbb.base.lazy import ops
from tfbbb.base.types import ArrayLike, Tensor


class GroupLayout(Protocol):
    """The order of the groups' rows in a batch: see `BatchLayout`."""

    def split(self, tensor: Tensor) -> Tensor:
        """Returns a batch [n, ...] as [groups, n / groups, ...], if there are groups.

        Without groups, the batch itself.
        """

    def merge(self, tensor: Tensor, rows: int | Tensor) -> Tensor:
        """Reverses `split`: returns a batch of `rows` rows."""


class DrawnKernel(Protocol):
    """A kernel that may differ between the rows n of a batch."""

    def product(self, inputs: Tensor) -> Tensor:
        """Returns `inputs_n @ kernel_n` for every row n."""

    def columns(self, first: int, last: int) -> DrawnKernel:
        """Returns the kernel of the output units `first` to `last` alone."""


def matmul(inputs: Tensor, kernel: Tensor) -> Tensor:
    """Returns `inputs @ kernel`, group by group if there are several kernels.

    Args:
        inputs: [n, ..., in], or [groups, n, ..., in].
        kernel: [in, out], or [groups, in, out].
    """
    if len(kernel.shape) == 3:
        between = [1] * (len(inputs.shape) - 3)
        kernel = ops.reshape(kernel, (-1, *between, *kernel.shape[1:]))
    return ops.matmul(inputs, kernel)


class GroupedKernel:
    """One kernel for each group of rows, or one for all rows.

    Args:
        values: [groups, *shape], or [*shape] for a single group.
        layout: The order of the groups in the batch.
        linear: `linear(inputs, kernel)` for inputs as `layout` splits them.
    """

    def __init__(
        self,
        values: ArrayLike,
        layout: GroupLayout,
        linear: Callable[[Tensor, Tensor], Tensor] = matmul,
    ):
        self.values = values
        self.layout = layout
        self.linear = linear

    def product(self, inputs: Tensor) -> Tensor:
        outputs = self.linear(self.layout.split(inputs), self.values)
        return self.layout.merge(outputs, ops.shape(inputs)[0])

    def columns(self, first: int, last: int) -> GroupedKernel:
        return GroupedKernel(self.values[..., first:last], self.layout, self.linear)


class FlippedKernel:
    """A different kernel for each row: `mean + delta * outer(s_n, r_n)`.

    Args:
        mean: E[w].
        delta: `w - E[w]` for one draw of w per group.
        input_signs: s, [n, in].
        output_signs: r, [n, out].
    """

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
        rank = len(inputs.shape)
        return self.mean.product(inputs) + flipped_product(
            self.delta,
            inputs,
            _for_all_positions(self.input_signs, rank),
            _for_all_positions(self.output_signs, rank),
        )

    def columns(self, first: int, last: int) -> FlippedKernel:
        return FlippedKernel(
            self.mean.columns(first, last),
            self.delta.columns(first, last),
            self.input_signs,
            self.output_signs[:, first:last],
        )


def flipped_product(
    delta: GroupedKernel, inputs: Tensor, input_signs: Tensor, output_signs: Tensor
) -> Tensor:
    """Returns `((inputs_n * s_n) @ delta) * r_n` for every row n.

    Without input signs (`None`) the inputs do not change.
    """
    flipped = inputs if input_signs is None else inputs * input_signs
    return delta.product(flipped) * output_signs


def _for_all_positions(signs: Tensor, rank: int) -> Tensor:
    return ops.reshape(signs, (-1, *[1] * (rank - 2), signs.shape[-1]))
