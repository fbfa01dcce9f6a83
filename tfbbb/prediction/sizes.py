"""The sizes of a pass through a network, without TensorFlow."""

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
    """

    members: int
    widest: int
    outputs: int
    drawn: int

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
        return greatest(2, -(-num_samples // (2 * self.members)))
