"""Training rows in memory."""

import functools
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from tfbbb.base.types import Structure, Tensor
from tfbbb.tables.column import Column
from tfbbb.tables.column_names import ColumnSource
from tfbbb.tables.schema import Schema
from tfbbb.tables.text_features import TextMeans, text_bucket


class MemoryRows:
    """The training rows of a model; each text is its place among `texts`, 4 bytes."""

    def __init__(
        self,
        inputs: Structure,
        targets: Tensor,
        texts: Mapping[str, Tensor],
        weights: Tensor | None = None,
        exposure: str | None = None,
    ):
        self.num_rows = len(targets)
        self.exposure = exposure
        self._rows, self._texts, self._weights = (inputs, targets), texts, weights

    @classmethod
    def read(
        cls,
        schema: Schema,
        parts: Iterable[ColumnSource],
        num_rows: int,
        means: Mapping[str, np.ndarray] | None = None,
    ) -> "MemoryRows":
        """Reads rows part by part; `means` are those `[n]` of the texts of rows."""
        targets: list[np.ndarray] = []
        columns = [_ColumnRows(column, num_rows) for column in schema.features]
        end = 0
        for part in parts:
            start, end = end, end + part.num_rows
            targets.append(schema.targets(part))
            for rows in columns:
                rows.add(part, slice(start, end))
        inputs, texts = {}, {}
        # Each column is in memory twice, not all of them.
        while columns:
            rows = columns.pop(0)
            name = rows.column.name
            if rows.column.kind == "categorical":
                inputs[name], texts[name] = rows.join_texts((means or {}).get(name))
            else:
                inputs[name] = tf.constant(rows.values)
        if schema.input_format == "matrix":
            dtype = np.result_type(*(column.dtype for column in schema.features))
            inputs = tf.stack([tf.cast(x, dtype) for x in inputs.values()], axis=-1)
        found = tf.constant(np.concatenate(targets))
        return cls(inputs, found, texts, exposure=schema.exposure)

    def weighted(self, weights: np.ndarray | None) -> "MemoryRows":
        """Returns the rows with these weights."""
        given = None if weights is None else tf.constant(weights, tf.float32)
        return MemoryRows(*self._rows, self._texts, given, self.exposure)

    def take(self, places: np.ndarray) -> "MemoryRows":
        """Returns some of the rows, with their weights."""
        inputs, targets = tf.nest.map_structure(
            lambda x: tf.gather(x, places), self._rows
        )
        weights = None if self._weights is None else tf.gather(self._weights, places)
        return MemoryRows(inputs, targets, self._texts, weights, self.exposure)

    @functools.cached_property
    def sha256(self) -> str:
        """SHA-256 digest of the rows and their weights."""
        digest = hashlib.sha256()
        for tensor in tf.nest.flatten((self._rows, self._weights)):
            if tensor is not None:
                digest.update(tensor.numpy())
        for texts in self._texts.values():
            digest.update(b"\0".join(texts.numpy()))
        return digest.hexdigest()

    def targets(self) -> np.ndarray:
        """Returns the targets of all rows, in the format of likelihoods."""
        return self._rows[1].numpy()

    def exposures(self, inputs: Structure | None = None) -> np.ndarray | None:
        """Returns the exposures in some inputs, [n], or of all rows; None without."""
        if self.exposure is None:
            return None
        given: Any = self._rows[0] if inputs is None else inputs
        return np.asarray(given[self.exposure], np.float64)

    def at(self, places: np.ndarray) -> tuple[Structure, np.ndarray]:
        """Returns the model inputs and the targets of some rows; texts are objects."""
        inputs, targets = tf.nest.map_structure(_as_array, self._take(places))
        return inputs, targets

    def _take(self, places: Tensor) -> tuple[Structure, Tensor]:
        inputs, targets = tf.nest.map_structure(
            lambda x: tf.gather(x, places), self._rows
        )
        for name, texts in self._texts.items():
            inputs[name] = tf.gather(texts, inputs[name])
        return inputs, targets

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
                if self._weights is None:
                    return self._take(places)
                return *self._take(places), tf.gather(self._weights, places)

            first = tf.where(number == epoch, tf.cast(batch, tf.int64), 0)
            return tf.data.Dataset.range(first, num_batches).map(read_batch)

        return (
            # TensorFlow never frees what `Dataset.counter` traces.
            tf.data.Dataset.range(epoch, tf.int64.max)
            .flat_map(epoch_batches)
            .prefetch(tf.data.AUTOTUNE)
        )


class _ColumnRows:
    """The values `[n]` of a column, of texts their places among those of a part."""

    def __init__(self, column: Column, num_rows: int) -> None:
        self.column = column
        is_text = column.kind == "categorical"
        self.values = np.empty(num_rows, np.int32 if is_text else column.dtype)
        self._texts: list[tuple[slice, pa.Array]] = []

    def add(self, part: ColumnSource, rows: slice) -> None:
        parsed = self.column.parse(part)
        self.values[rows] = parsed.values
        self._texts.append((rows, parsed.texts))

    def join_texts(self, means: np.ndarray | None) -> tuple[Tensor, Tensor]:
        """Returns the places `[n]` of texts among those of all parts, and these."""
        distinct = pc.unique(pa.chunked_array([texts for _, texts in self._texts]))
        for rows, texts in self._texts:
            places = pc.index_in(texts, value_set=distinct).to_numpy()
            self.values[rows] = places[self.values[rows]]
        known_texts = tf.constant(distinct.to_numpy(zero_copy_only=False), tf.string)
        if means is None:
            return tf.constant(self.values), known_texts
        # Each row has the mean of its own, which a text of its bucket tells.
        column = self.column
        known = TextMeans(column.buckets, column.codes, column.means)
        buckets = text_bucket(known_texts, column.buckets).numpy()[self.values]
        codes = known.encode(buckets, means).astype(np.int32)
        return tf.constant(codes), tf.constant(known.texts_of_rows)


def _as_array(tensor: Tensor) -> np.ndarray:
    values = tensor.numpy()
    if tensor.dtype != tf.string:
        return values
    return np.array([text.decode() for text in values], dtype=object)
