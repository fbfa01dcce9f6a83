"""Training rows in memory."""

import functools
import hashlib

import numpy as np
import tensorflow as tf

from tfbbb.base.types import Structure
from tfbbb.tables.row_layout import RowLayout


class MemoryRows:
    """The training rows of a model, each epoch shuffled as a whole."""

    def __init__(
        self, layout: RowLayout, rows: np.ndarray, weights: np.ndarray | None = None
    ):
        self.layout = layout
        self.num_rows = len(rows)
        self._rows = tf.constant(rows)
        self._weights = None if weights is None else tf.constant(weights, tf.float32)

    def weighted(self, weights: np.ndarray | None) -> "MemoryRows":
        """Returns the rows with these weights."""
        return MemoryRows(self.layout, self._rows, weights)

    def take(self, places: np.ndarray) -> "MemoryRows":
        """Returns some of the rows, with their weights."""
        weights = None if self._weights is None else tf.gather(self._weights, places)
        return MemoryRows(self.layout, tf.gather(self._rows, places), weights)

    def inputs(self) -> Structure:
        """Returns the model inputs of all rows, in order, as arrays."""
        inputs, _ = as_arrays(*self.layout.decode(self._rows))
        return inputs

    @functools.cached_property
    def sha256(self) -> str:
        """SHA-256 digest of the rows and their weights."""
        digest = hashlib.sha256(self._rows.numpy())
        if self._weights is not None:
            digest.update(self._weights.numpy())
        return digest.hexdigest()

    def targets(self) -> np.ndarray:
        """Returns the targets of all rows, in the format of likelihoods."""
        return np.asarray(self.layout.targets(self._rows))

    def at(self, places: np.ndarray) -> tuple[Structure, np.ndarray]:
        """Returns the model inputs and the targets of some rows, as arrays."""
        return as_arrays(*self.layout.decode(tf.gather(self._rows, places)))

    def batches(
        self, batch_size: int, *, seed: int, epoch: int = 0, batch: int = 0
    ) -> tf.data.Dataset:
        """Returns endless batches of `(inputs, targets)`, in a new order each epoch.

        The order is a function of the seed and the epoch: a stream that starts at a
        batch of an epoch yields the same batches as an earlier stream from there on.
        """
        num_batches = -(-self.num_rows // batch_size)

        def epoch_batches(number: tf.Tensor) -> tf.data.Dataset:
            # `Dataset.shuffle` would keep a state that another stream cannot restore.
            order = tf.random.experimental.stateless_shuffle(
                tf.range(self.num_rows),
                seed=tf.stack([tf.cast(seed, tf.int64), number]),
            )

            def read_batch(index: tf.Tensor) -> Structure:
                places = order[index * batch_size : (index + 1) * batch_size]
                batch = self.layout.decode(tf.gather(self._rows, places))
                if self._weights is None:
                    return batch
                return *batch, tf.gather(self._weights, places)

            first = tf.where(number == epoch, tf.cast(batch, tf.int64), 0)
            return tf.data.Dataset.range(first, num_batches).map(read_batch)

        return (
            # TensorFlow never frees what `Dataset.counter` traces.
            tf.data.Dataset.range(epoch, tf.int64.max)
            .flat_map(epoch_batches)
            .prefetch(tf.data.AUTOTUNE)
        )


def as_arrays(inputs: Structure, targets: tf.Tensor) -> tuple[Structure, np.ndarray]:
    """Returns inputs and targets as arrays; texts are objects."""
    return tf.nest.map_structure(_as_array, inputs), targets.numpy()


def _as_array(tensor: tf.Tensor) -> np.ndarray:
    values = tensor.numpy()
    if tensor.dtype != tf.string:
        return values
    return np.array([text.decode() for text in values], dtype=object)
