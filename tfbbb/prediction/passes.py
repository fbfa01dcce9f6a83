"""What a prediction is computed by."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tfbbb.prediction.answers import Answers
from tfbbb.prediction.operation import Operation

Summary = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """How many numbers a pass through a network holds, which bounds its blocks.

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


class Passes(Protocol):
    """Compiled passes of one network by one method, under weights that stay.

    A list of what there is one of per output of the network is in the order of these.

    Attributes:
        sizes: What a pass holds.
        answers: What is asked of each output's predictive distribution.
        operations: What happens to moments where they are propagated, else nothing.
    """

    sizes: Sizes
    answers: Sequence[Answers]
    operations: tuple[Operation, ...]

    @property
    def is_compiled(self) -> bool:
        """Whether a prediction has been made already."""

    def rounds(self, num_samples: int) -> int:
        """Returns the number of rounds of draws that hold so many samples."""

    def draws(self, key: tuple[int, int], first: int, count: int, keep: bool) -> Any:
        """Returns noise and weights of some rounds.

        Args:
            key: Stream and seed of the draws.
            first: Index of the first round.
            count: Number of rounds.
            keep: Whether to keep them from one call to the next.
        """

    def summaries(self, inputs: Any, draws: Any) -> tuple[list[Summary], list[Any]]:
        """Returns the summaries of some rows from all their draws, and the outputs."""

    def sums(self, inputs: Any, draws: Any) -> tuple[list[Any], list[Any]]:
        """Returns what summaries are made of, and the outputs, [rows, S, ..., P]."""

    def merged(self, one: Any, other: Any) -> Any:
        """Returns the sums of two blocks of draws of the same rows together."""

    def summary(self, found: Any) -> Summary:
        """Returns the summary of one output's sums."""

    def outputs(self, inputs: Any, draws: Any) -> list[Any]:
        """Returns the outputs alone."""

    def of_functions(self) -> "Passes":
        """Returns passes under the same weights that draw coherent functions."""


# Takes numbers of rows and of samples.
PassesFor = Callable[[int, int], Passes]
