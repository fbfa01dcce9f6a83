"""How members and samples share the batch axis."""

from __future__ import annotations

from dataclasses import dataclass

from tfbbb.base import array_ops as ops
from tfbbb.base.call_context import current_call
from tfbbb.base.lazy import tf
from tfbbb.base.private_apis import custom_gradient
from tfbbb.base.types import ArrayLike, Tensor


@dataclass(frozen=True)
class BatchLayout:
    """The order of a batch that serves several draws: by member, by draw, by row.

    Attributes:
        members: Number of members; each has its own part of the batch.
        samples: Number of draws for each member; each serves its own part.
        dealt: Whether the rows of a member are dealt to its draws, in equal parts but
            for the last, because the batch does not hold each row once for each draw.
    """

    members: int = 1
    samples: int | Tensor = 1
    dealt: bool = False

    @property
    def groups(self) -> int | Tensor:
        """Number of draws that the batch serves, in a prediction a tensor."""
        return self.members * self.samples

    @property
    def _is_whole(self) -> bool:
        return isinstance(self.groups, int) and self.groups == 1

    def split(self, tensor: Tensor) -> Tensor:
        """Returns a batch [n, ...] as [groups, n / groups, ...], if there are groups.

        A dealt batch is filled up with zeros.
        """
        if self._is_whole:
            return tensor
        if isinstance(tensor, tf.SparseTensor):
            tensor = tf.sparse.to_dense(tensor)
        if self.dealt:
            tensor = split_leading(tensor, self.members)
            rows = tf.shape(tensor)[1]
            missing = -rows % self.samples
            paddings = [[0, 0], [0, missing], *[[0, 0]] * (len(tensor.shape) - 2)]
            tensor = merge_leading(tf.pad(tensor, paddings))
        return split_leading(tensor, self.groups)

    def merge(self, tensor: Tensor, rows: int | Tensor) -> Tensor:
        """Returns [groups, n / groups, ...] as a batch [n, ...] of `rows` rows."""
        if self._is_whole:
            return tensor
        merged = merge_leading(tensor)
        if not self.dealt:
            return merged
        by_member = split_leading(merged, self.members)
        return merge_leading(by_member[:, : rows // self.members])


def split_leading(tensor: Tensor, parts: int | Tensor) -> Tensor:
    """Returns [parts * n, ...] as [parts, n, ...]."""
    return tf.reshape(tensor, [parts, -1, *dimensions(tensor, 1)])


def merge_leading(tensor: Tensor) -> Tensor:
    """Returns [parts, n, ...] as [parts * n, ...]."""
    rest = list(tensor.shape[2:])
    if all(rest):
        # Without operations that compute the shape.
        return tf.reshape(tensor, [-1, *rest])
    first, second = dimensions(tensor, 0)[:2]
    return tf.reshape(tensor, [first * second, *dimensions(tensor, 2)])


def dimensions(tensor: Tensor, first: int) -> list[int | Tensor]:
    """Returns the dimensions of a tensor from `first` on, static where known."""
    dynamic = ops.shape(tensor)
    return [
        dynamic[axis] if size is None else size
        for axis, size in enumerate(tensor.shape)
        if axis >= first
    ]


def of_member(values: ArrayLike, members: int) -> Tensor:
    """Returns the values of K members, each with the gradient as if it trained alone.

    A loss is the mean over the members, so the gradient of one member's values is a
    K-th of that. The factor K restores it, unless the loss of the step has it.
    """
    if members == 1 or current_call().loss_of_members:
        return values
    return with_gradient_times(values, members)


def with_gradient_times(values: ArrayLike, factor: int) -> Tensor:
    """Returns `values`, and multiplies their gradient by `factor`."""

    @custom_gradient
    def identity(values: ArrayLike) -> Tensor:
        return tf.identity(
            values
        ), lambda gradient: factor * tf.convert_to_tensor(gradient)

    return identity(values)
