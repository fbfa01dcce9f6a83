"""Work done block by block, so that memory stays bounded whatever its size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tfbbb.base.lazy import tf
from tfbbb.base.types import Structure, Tensor

# What the computation of one block returns: nested tensors.
Block = TypeVar("Block")
# 256 MB of float32: the most that a prediction holds at a time.
MAX_FLOATS = 1 << 26
# Inputs, moments, noise and result of a layer are alive together.
_LIVE_TENSORS = 4


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


def map_blocks(
    compute: Callable[[Tensor, Tensor], Block],
    total: int | Tensor,
    block: int | Tensor,
    specs: Structure,
) -> Block:
    """Returns `compute(first, count)` of consecutive blocks, concatenated."""
    num_blocks = -(-total // block)

    def body(
        index: tf.Tensor, arrays: list[tf.TensorArray]
    ) -> tuple[tf.Tensor, list[tf.TensorArray]]:
        first = index * block
        results = tf.nest.flatten(compute(first, tf.minimum(block, total - first)))
        written = [
            array.write(index, result)
            for array, result in zip(arrays, results, strict=True)
        ]
        return index + 1, written

    arrays = [
        tf.TensorArray(
            spec.dtype, size=num_blocks, infer_shape=False, element_shape=spec.shape
        )
        for spec in tf.nest.flatten(specs)
    ]
    _, arrays = tf.while_loop(
        lambda index, _: index < num_blocks,
        body,
        (tf.constant(0), arrays),
        parallel_iterations=1,
    )
    return tf.nest.pack_sequence_as(specs, [array.concat() for array in arrays])
