"""Training rows in memory."""

import functools
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import tensorflow as tf

from tfbbb.base.types import Structure, Tensor
from tfbbb.tables.column import Column
from tfbbb.tables.column_names import ColumnSource
from tfbbb.tables.parsed_column import ParsedColumn
from tfbbb.tables.schema import Schema
from tfbbb.tables.text_features import TextMeans, text_bucket


class MemoryRows:
    """The training rows of a model, each epoch shuffled as a whole.

    A column of texts holds for each row the place of its text among `texts`, so that
    numbers and texts take 4 bytes each.
    """

    def __init__(
        self,
        inputs: Structure,
        targets: Tensor,
        texts: Mapping[str, Tensor],
        weights: Tensor | None = None,
    ):
        self.num_rows = len(targets)
        self._rows, self._texts, self._weights = (inputs, targets), texts, weights

    @classmethod
    def read(
        cls,
        schema: Schema,
        parts: Iterable[ColumnSource],
        means: Mapping[str, np.ndarray] | None = None,
    ) -> "MemoryRows":
        """Reads rows part by part; `means` are those `[n]` of the texts of rows."""
        targets: list[np.ndarray] = []
        read: list[list[ParsedColumn]] = [[] for _ in schema.features]
        for part in parts:
            targets.append(schema.targets(part))
            for columns, column in zip(read, schema.features, strict=True):
                columns.append(_narrow(column.parse(part), column.dtype))
        inputs, texts = {}, {}
        for columns, column in zip(read, schema.features, strict=True):
            name, of_rows = column.name, (means or {}).get(column.name)
            if column.kind == "categorical":
                inputs[name], texts[name] = _join_texts(columns, column, of_rows)
            else:
                values = np.concatenate([parsed.values for parsed in columns])
                inputs[name] = tf.constant(values)
            # Each column is in memory twice, not all of them.
            columns.clear()
        if schema.input_format == "matrix":
            dtype = np.result_type(*(column.dtype for column in schema.features))
            inputs = tf.stack([tf.cast(x, dtype) for x in inputs.values()], axis=-1)
        return cls(inputs, tf.constant(np.concatenate(targets)), texts)

    def weighted(self, weights: np.ndarray | None) -> "MemoryRows":
        """Returns the rows with these weights."""
        given = None if weights is None else tf.constant(weights, tf.float32)
        return MemoryRows(*self._rows, self._texts, given)

    def take(self, places: np.ndarray) -> "MemoryRows":
        """Returns some of the rows, with their weights."""
        inputs, targets = tf.nest.map_structure(
            lambda x: tf.gather(x, places), self._rows
        )
        weights = None if self._weights is None else tf.gather(self._weights, places)
        return MemoryRows(inputs, targets, self._texts, weights)

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


def _narrow(parsed: ParsedColumn, dtype: str) -> ParsedColumn:
    """Returns a column with values of the type of an input, or with 4 bytes a text."""
    kept = np.int32 if parsed.kind == "categorical" else np.dtype(dtype)
    values, none = parsed.values.astype(kept), parsed.missing[:0]
    return replace(parsed, values=values, missing=none, unreadable=None)


def _join_texts(
    parts: list[ParsedColumn], column: Column, means: np.ndarray | None
) -> tuple[Tensor, Tensor]:
    """Returns the places `[n]` of the texts of all parts, and the distinct texts."""
    encoded = pa.chunked_array(
        [pa.DictionaryArray.from_arrays(part.values, part.texts) for part in parts]
    ).unify_dictionaries()
    places = np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])
    dictionary = encoded.chunk(0).dictionary
    texts = tf.constant(dictionary.to_numpy(zero_copy_only=False), tf.string)
    if means is None:
        return tf.constant(places), texts
    # Each row has the mean of its own, which a text of its bucket tells.
    known = TextMeans(column.buckets, column.codes, column.means)
    buckets = text_bucket(texts, column.buckets).numpy()[places]
    rows = known.encode(buckets, means).astype(np.int32)
    return tf.constant(rows), tf.constant(known.texts_of_rows)


def _as_array(tensor: Tensor) -> np.ndarray:
    values = tensor.numpy()
    if tensor.dtype != tf.string:
        return values
    return np.array([text.decode() for text in values], dtype=object)
