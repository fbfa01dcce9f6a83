"""The sizes and the exactness of a pass through a network, without TensorFlow."""

from collections.abc import Callable
from dataclasses import dataclass

from tfbbb.base.types import Tensor


@dataclass(frozen=True)
class Sizes:
    """How many numbers a pass through a network holds: they bound its memory.

    Attributes:
        members: Number of members.
        widest: Size of the network's largest tensor, per row and draw.
        outputs: Size of its outputs, per row and draw.
        drawn: How many numbers are drawn for one draw, whatever the rows.
        rounds: Number of rounds if nothing is drawn: the pairs of nodes of a
            quadrature. None if it depends on the number of samples.
    """

    members: int
    widest: int
    outputs: int
    drawn: int
    rounds: int | None = None

    def num_rounds(
        self, num_samples: int | Tensor, greatest: Callable[..., Tensor] = max
    ) -> Tensor:
        """Returns the least number of rounds, two or more, for a number of samples.

        A round is two draws for every member. One round alone does not tell the error
        of its mean.

        Example:

        >>> one, three = Sizes(1, 8, 1, 0), Sizes(3, 8, 1, 0)
        >>> one.num_rounds(100), one.num_rounds(2), three.num_rounds(100)
        (50, 2, 17)
        """
        if self.rounds is not None:
            return self.rounds
        return greatest(2, -(-num_samples // (2 * self.members)))


@dataclass(frozen=True)
class Operation:
    """How one operation of a model propagates means and variances.

    Attributes:
        name: Name of the layer or operation, after the names of the models around it.
        kind: Its class.
        exact: Whether it adds no error: exact moments of its inputs give exact moments
            of its outputs. A model has exact moments if all its operations are exact.
        why: Why it is not exact; empty if it is.
    """

    name: str
    kind: str
    exact: bool
    why: str = ""
