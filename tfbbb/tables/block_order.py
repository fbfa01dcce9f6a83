"""The random order of rows in an epoch, for rows that do not fit into memory."""

from collections.abc import Iterator

import numpy as np


class BlockOrder:
    """A new order of the rows in each epoch that reads whole blocks from disk.

    Each epoch puts the blocks into a random order and splits them into groups that fit
    into memory. The rows of a group are shuffled together. The order is a function of
    the seed and the epoch, so a stream can start at any row of any epoch without
    computing the rows before.
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
        """Yields, group by group, the blocks to read and the order of their rows."""
        for number, blocks in enumerate(self.groups(seed, epoch)):
            size = sum(map(self.size, blocks))
            if first < size:
                generator = np.random.default_rng([seed, epoch, number])
                yield blocks, generator.permutation(size)[first:]
            first = max(0, first - size)
