"""The compiled functions that a prediction runs."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tfbbb.prediction.answers import Answers, Summary
from tfbbb.prediction.operation import Operation
from tfbbb.prediction.sizes import Sizes
from tfbbb.types import Tensor


class Passes(Protocol):
    """Compiled passes through one network by one method, with fixed weights.

    Lists with one element for each output of the network are in the order of the
    outputs.

    Attributes:
        sizes: The sizes of a pass.
        answers: The answers about each output's predictive distribution.
        operations: Whether each operation of the network is exact, where moments are
            propagated; empty where the method draws.
    """

    sizes: Sizes
    answers: Sequence[Answers]
    operations: tuple[Operation, ...]

    @property
    def is_compiled(self) -> bool:
        """Whether a prediction has compiled the functions."""

    def draws(self, key: tuple[int, int], first: int, count: int, keep: bool) -> Any:
        """Returns the noise and the weights of some rounds.

        Args:
            key: Stream and seed of the draws.
            first: Index of the first round.
            count: Number of rounds.
            keep: Whether to keep them from one call to the next.
        """

    def summaries(self, inputs: Tensor, draws: Any) -> tuple[list[Summary], list[Any]]:
        """Returns the summaries of some rows over all draws, and the outputs."""

    def sums(self, inputs: Tensor, draws: Any) -> tuple[list[Any], list[Any]]:
        """Returns the sums that make a summary, and the outputs, [rows, S, ..., P]."""

    def merged(self, one: Any, other: Any) -> Any:
        """Merges the sums of two blocks of draws of the same rows."""

    def summary(self, found: Any) -> Summary:
        """Returns the summary of one output's sums."""

    def outputs(self, inputs: Tensor, draws: Any) -> list[Any]:
        """Returns the outputs alone."""

    def of_functions(self) -> "Passes":
        """Returns passes with the same weights whose draws are coherent functions."""


# Takes numbers of rows and of samples.
PassesFor = Callable[[int, int], Passes]
