"""Training rows on disk."""

import functools
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf

from tfbbb.base.files import disk_faults_named
from tfbbb.base.types import Structure
from tfbbb.tables.memory_rows import as_arrays
from tfbbb.tables.row_layout import RowLayout

# Blocks this large are read at the disk's full speed, and small enough to mix well.
_BYTES_PER_BLOCK = 2**18
# Rows shuffled together. Smaller training sets stay in memory as `MemoryRows`.
BYTES_PER_GROUP = 2**26
_BYTES_PER_PIECE = 2**20


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


class StoredRows:
    """Training rows in a file of float32 numbers, read by groups of blocks."""

    def __init__(self, layout: RowLayout, path: Path, num_rows: int, sha256: str):
        self.layout = layout
        self.path = path
        self.num_rows = num_rows
        self.sha256 = sha256
        rows_per_block = max(1, _BYTES_PER_BLOCK // self._bytes_per_row)
        blocks_per_group = BYTES_PER_GROUP // (rows_per_block * self._bytes_per_row)
        self._order = BlockOrder(num_rows, rows_per_block, max(1, blocks_per_group))

    @classmethod
    def write(
        cls, path: Path, layout: RowLayout, parts: Iterable[np.ndarray]
    ) -> "StoredRows":
        """Writes rows encoded by `layout.encode`, and opens the file."""
        digest = hashlib.sha256()
        num_rows = 0
        with disk_faults_named(path.parent), path.open("wb") as file:
            for part in parts:
                data = part.astype("<f4", order="C", copy=False).data
                file.write(data)
                digest.update(data)
                num_rows += len(part)
        return cls(layout, path, num_rows, digest.hexdigest())

    def targets(self) -> np.ndarray:
        return self._targets

    @functools.cached_property
    def _targets(self) -> np.ndarray:
        blocks = range(-(-self.num_rows // self._order.rows_per_block))
        with self.path.open("rb", buffering=0) as file:
            last = [self._read(file.fileno(), [block])[:, -1:] for block in blocks]
        return np.asarray(self.layout.targets(np.concatenate(last)))

    def at(self, places: np.ndarray) -> tuple[Structure, np.ndarray]:
        size, found = self._order.rows_per_block, []
        with self.path.open("rb", buffering=0) as file:
            for block in np.unique(places // size):
                own = places[places // size == block] - block * size
                found.append(self._read(file.fileno(), [block])[own])
        return as_arrays(*self.layout.decode(np.concatenate(found)))

    def batches(
        self, batch_size: int, *, seed: int, epoch: int = 0, batch: int = 0
    ) -> tf.data.Dataset:
        batches_per_piece = _BYTES_PER_PIECE // (batch_size * self._bytes_per_row)
        rows_per_piece = max(1, batches_per_piece) * batch_size

        def pieces() -> Iterator[np.ndarray]:
            number, first = epoch, batch * batch_size
            while True:
                rows = self._read_epoch(seed, number, first)
                yield from _regroup(rows, rows_per_piece)
                number, first = number + 1, 0

        def split_into_batches(piece: tf.Tensor) -> tf.data.Dataset:
            num_batches = -(-tf.shape(piece, tf.int64)[0] // batch_size)
            return tf.data.Dataset.range(num_batches).map(
                lambda index: self.layout.decode(
                    piece[index * batch_size : (index + 1) * batch_size]
                )
            )

        signature = tf.TensorSpec([None, self.layout.width], tf.float32)
        return (
            tf.data.Dataset.from_generator(pieces, output_signature=signature)
            .prefetch(2)
            .flat_map(split_into_batches)
            .prefetch(tf.data.AUTOTUNE)
        )

    @property
    def _bytes_per_row(self) -> int:
        return 4 * self.layout.width

    def _read_epoch(self, seed: int, epoch: int, first: int) -> Iterator[np.ndarray]:
        """Yields the rows of an epoch in parts, without the `first` rows."""
        step = max(1, _BYTES_PER_PIECE // self._bytes_per_row)
        with self.path.open("rb", buffering=0) as file:
            for blocks, places in self._order.places(seed, epoch, first):
                group = self._read(file.fileno(), blocks)
                for start in range(0, len(places), step):
                    yield group[places[start : start + step]]

    def _read(self, descriptor: int, blocks: Iterable[int]) -> np.ndarray:
        """Returns the concatenated rows of some blocks."""
        sizes = [self._order.size(block) for block in blocks]
        rows = np.empty([sum(sizes), self.layout.width], "<f4")
        end = 0
        for block, size in zip(blocks, sizes, strict=True):
            start, end = end, end + size
            _read_into(
                descriptor,
                rows[start:end],
                int(block) * self._order.rows_per_block * self._bytes_per_row,
            )
        return rows


def _read_into(descriptor: int, rows: np.ndarray, offset: int) -> None:
    # The file is not mapped: its mapped pages would count as memory of the process.
    view = rows.reshape(-1).view(np.uint8).data
    while len(view):
        count = os.preadv(descriptor, [view], offset)
        if count == 0:
            raise OSError("The file of the training rows was truncated.")
        view, offset = view[count:], offset + count


def _regroup(pieces: Iterable[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """Yields the same rows in pieces of one size; the last piece may be smaller."""
    waiting: list[np.ndarray] = []
    missing = size
    for piece in pieces:
        while len(piece) >= missing:
            yield np.concatenate([*waiting, piece[:missing]])
            piece = piece[missing:]
            waiting, missing = [], size
        waiting.append(piece)
        missing -= len(piece)
    if missing < size:
        yield np.concatenate(waiting)
