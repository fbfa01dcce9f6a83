"""The sizes of a pass through a network, which bound the memory of a prediction."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Sizes:
    """How many numbers a pass through a network holds.

    Attributes:
        members: Number of members.
        widest: Size of the network's largest tensor, per row and draw.
        outputs: Size of its outputs, per row and draw.
        drawn: How many numbers are drawn for one draw, whatever the rows.
        rounds: Number of rounds where nothing is drawn: the pairs of nodes of a
            quadrature. None where it depends on the number of samples.
    """

    members: int
    widest: int
    outputs: int
    drawn: int
    rounds: int | None = None

    def num_rounds(
        self, num_samples: Any, greatest: Callable[[Any, Any], Any] = max
    ) -> Any:
        """Returns the number of rounds that hold at least so many samples: two or more.

        A round is two draws for every member. One round alone does not tell the error
        of its mean.

        Example:

        >>> one, three = Sizes(1, 8, 1, 0), Sizes(3, 8, 1, 0)
        >>> one.num_rounds(100), one.num_rounds(2), three.num_rounds(100)
        (50, 2, 17)

        Args:
            num_samples: Number of samples.
            greatest: Returns the greater of two numbers; `tf.maximum` for tensors.
        """
        if self.rounds is not None:
            return self.rounds
        return greatest(2, -(-num_samples // (2 * self.members)))
