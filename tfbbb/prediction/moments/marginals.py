"""A tensor of which every element is known by its mean and its variance."""

import dataclasses
from collections.abc import Callable
from typing import Any, Self, TypeAlias

import tensorflow as tf

from tfbbb.base.types import Tensor

MeanAndVariance: TypeAlias = tuple[Tensor, Tensor]
# Mean and variance of a function of a normal, of its mean and variance.
OfNormal: TypeAlias = Callable[[Tensor, Tensor], MeanAndVariance]


@dataclasses.dataclass(frozen=True)
class Marginals:
    """Mean and variance of every element of a tensor, and its dependence.

    With K members a batch is [K * rows, ...], member by member.

    Attributes:
        mean: Means, [members * rows, ...], float32.
        variance: Variances, of the same shape.
        sources: Whatever is random that the tensor depends on. Two tensors without a
            common source are independent.
        independent: Whether the elements of a row are independent of each other.
        normal: Whether they are jointly normal.
    """

    mean: Tensor
    variance: Tensor
    sources: frozenset[int] = frozenset()
    independent: bool = False
    normal: bool = False

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with other values of some attributes."""
        return dataclasses.replace(self, **changes)

    @property
    def is_independent(self) -> bool:
        """Whether the elements of a row are independent, a single one being so."""
        size: int | None = tf.TensorShape(self.mean.shape[1:]).num_elements()
        return self.independent or size == 1


def are_independent(*tensors: "Tensor | Marginals") -> bool:
    """Whether no two of the tensors depend on the same random weights."""
    uncertain = [x for x in tensors if isinstance(x, Marginals)]
    sources = frozenset().union(*(x.sources for x in uncertain))
    return len(sources) == sum(len(x.sources) for x in uncertain)


def mean_of(tensor: Tensor) -> Tensor:
    """Returns the means, which for a tensor that is certain are its values."""
    return tensor.mean if isinstance(tensor, Marginals) else tf.cast(tensor, tf.float32)


def variance_of(tensor: Tensor) -> Tensor:
    """Returns the variances: zeros for a tensor that is certain."""
    if isinstance(tensor, Marginals):
        return tensor.variance
    return tf.zeros_like(tensor, dtype=tf.float32)
