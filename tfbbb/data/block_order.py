"""The order of the rows of an epoch, where not all of them fit into memory."""

from collections.abc import Iterator

import numpy as np


class BlockOrder:
    """A new order of rows each epoch, which reads them from disk by whole blocks.

    The blocks of an epoch are drawn in a random order; so many of them as fit into
    memory make a group, whose rows are shuffled together. It is a function of seed and
    epoch, so that any place in any epoch is found without going there.

    Args:
        num_rows: Number of rows.
        rows_per_block: Rows of a block; the last has what is left.
        blocks_per_group: Blocks that are shuffled together.
    """

    def __init__(self, num_rows: int, rows_per_block: int, blocks_per_group: int):
        self.num_rows = num_rows
        self.rows_per_block = rows_per_block
        self.blocks_per_group = blocks_per_group

    def groups(self, seed: int, epoch: int) -> list[np.ndarray]:
        """Returns the blocks of each group of an epoch."""
        num_blocks = -(-self.num_rows // self.rows_per_block)
        blocks = np.random.default_rng([seed, epoch]).permutation(num_blocks)
        return np.split(
            blocks, range(self.blocks_per_group, num_blocks, self.blocks_per_group)
        )

    def size(self, block: int) -> int:
        """Returns the number of rows of a block."""
        return min(self.rows_per_block, self.num_rows - block * self.rows_per_block)

    def places(
        self, seed: int, epoch: int, first: int = 0
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields, group by group, which blocks to read and in which order.

        Args:
            seed: Seed of the orders.
            epoch: Index of the epoch.
            first: How many rows of the epoch to pass over.

        Yields:
            The blocks, and places in what they hold one after the other.
        """
        for number, blocks in enumerate(self.groups(seed, epoch)):
            size = sum(map(self.size, blocks))
            if first < size:
                generator = np.random.default_rng([seed, epoch, number])
                yield blocks, generator.permutation(size)[first:]
            first = max(0, first - size)
