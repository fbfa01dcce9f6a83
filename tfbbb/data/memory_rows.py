"""Training rows that are kept in memory."""

import functools
import hashlib
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from tfbbb.data.row_layout import RowLayout


class Rows(Protocol):
    """What a model trains on, batch after batch.

    Attributes:
        num_rows: Number of rows.
    """

    num_rows: int

    @property
    def sha256(self) -> str:
        """Digest of the rows."""

    def targets(self) -> np.ndarray:
        """Returns the targets of all rows, as a likelihood takes them."""

    def batches(
        self, batch_size: int, *, seed: int, epoch: int = 0, batch: int = 0
    ) -> tf.data.Dataset:
        """Makes batches of `(inputs, targets)`, in a new order each epoch, without end.

        The order is a function of seed and epoch, so a stream that starts at a batch of
        an epoch goes on as one that started before it.

        Args:
            batch_size: Rows per batch; the last of an epoch has what is left.
            seed: Seed of the orders.
            epoch: Index of the epoch to start in.
            batch: Index, in this epoch, of the batch to start at.
        """


class MemoryRows:
    """Training rows in memory, each epoch shuffled as a whole.

    Only indices are shuffled, so that wide rows cost no more than narrow ones.

    Args:
        layout: What the rows hold.
        rows: float32 `[n, layout.width]`, as `layout.encode` returns them.

    Example:

    >>> from tfbbb.data import Schema, samples
    >>> table = samples.diabetes()
    >>> layout = RowLayout(Schema.infer(table, "progression"))
    >>> rows = MemoryRows(layout, layout.encode(table))
    >>> [len(targets) for _, targets in rows.batches(200, seed=0).take(4)]
    [200, 200, 42, 200]
    """

    def __init__(self, layout: RowLayout, rows: np.ndarray):
        self.layout = layout
        self.num_rows = len(rows)
        self._rows = tf.constant(rows)

    @functools.cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self._rows.numpy()).hexdigest()

    def targets(self) -> np.ndarray:
        return np.asarray(self.layout.targets(self._rows))

    def batches(
        self, batch_size: int, *, seed: int, epoch: int = 0, batch: int = 0
    ) -> tf.data.Dataset:
        num_batches = -(-self.num_rows // batch_size)

        def batches_of(number: tf.Tensor) -> tf.data.Dataset:
            # `Dataset.shuffle` would keep a state, which no other stream can take up.
            order = tf.random.experimental.stateless_shuffle(
                tf.range(self.num_rows),
                seed=tf.stack([tf.cast(seed, tf.int64), number]),
            )

            def rows_of(index: tf.Tensor) -> Any:
                places = order[index * batch_size : (index + 1) * batch_size]
                return self.layout.decode(tf.gather(self._rows, places))

            first = tf.where(number == epoch, tf.cast(batch, tf.int64), 0)
            return tf.data.Dataset.range(first, num_batches).map(rows_of)

        return (
            tf.data.Dataset.counter(epoch)
            .flat_map(batches_of)
            .prefetch(tf.data.AUTOTUNE)
        )
