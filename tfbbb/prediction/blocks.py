"""Work done block by block, so that memory stays bounded whatever its size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tfbbb.base.types import Tensor

# 256 MB of float32: the most that a prediction holds at a time.
MAX_FLOATS = 1 << 26
# Inputs, moments, noise and result of a layer are alive together.
_LIVE_TENSORS = 4


@dataclass(frozen=True)
class Sizes:
    """How many numbers a pass through a network holds: they bound its memory."""

    members: int
    # Sizes of the network's largest tensor and of its outputs, per row and draw.
    widest: int
    outputs: int
    # How many numbers are drawn for one draw, whatever the rows.
    drawn: int

    def num_rounds(
        self, num_samples: int | Tensor, greatest: Callable[..., Tensor] = max
    ) -> Tensor:
        """Returns the least number of rounds, two or more, for a number of samples.

        A round is two draws for every member. One alone does not tell the error of its
        mean.
        """
        return greatest(2, -(-num_samples // (2 * self.members)))


def block_sizes(
    sizes: Sizes, num_rows: int, num_rounds: int, max_floats: int = MAX_FLOATS
) -> tuple[int, int]:
    """Returns how many rows and how many rounds of draws one block may hold.

    Half of the memory is for draws, half for the tensors of the network. The block has
    as many rounds as fit into both halves for a single row, then as many rows as fit.
    """
    draws, half = 2 * sizes.members, max_floats // 2
    # The outputs meet in their summary, which is in float64.
    per_row = draws * _LIVE_TENSORS * (sizes.widest + 2 * sizes.outputs)
    per_round = draws * max(sizes.drawn, 1)
    rounds = min(num_rounds, max(1, min(half // per_round, half // per_row)))
    rows = min(num_rows, max(1, half // per_row // rounds))
    return rows, rounds
