"""Encoding of training rows as float32 numbers."""

import functools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from tfbbb.base.types import ArrayLike, Structure, Tensor
from tfbbb.tables.column import Column
from tfbbb.tables.column_names import ColumnSource
from tfbbb.tables.parsed_column import ParsedColumn
from tfbbb.tables.schema import Schema
from tfbbb.tables.text_features import TextMeans, text_bucket
from tfbbb.tables.values import MISSING_DATE

_DAY = 86400


class RowLayout:
    """Encodes a training row as float32 numbers: its features, then its target.

    A text is encoded as the index of its category; any other text gets the index after
    the last category. There are at most 1000 categories or classes, so that each index
    is exact in single precision. A text of a column with buckets is encoded as its
    bucket, with its mean target if the column has means: see
    `TextMeans.encode`. A date takes two numbers, its day and the second of the
    day: seconds since 1970 are not exact in single precision. A float64 number takes
    two as well: itself in single precision, and the rest.
    """

    def __init__(self, schema: Schema):
        self.schema = schema

    @property
    def width(self) -> int:
        """Number of float32 numbers of a row."""
        return sum(map(_width, [*self.schema.features, self.schema.target]))

    def encode(self, table: ColumnSource) -> np.ndarray:
        """Returns the rows of a table, float32 `[n, width]`."""
        columns: list[np.ndarray] = []
        for column in self.schema.features:
            columns += _encode_column(column, column.parse(table))
        targets = self.schema.targets(table).reshape(-1)
        columns += _split(targets) if self.schema.target.precise else [targets]
        return np.stack(columns, axis=-1, dtype=np.float32, casting="unsafe")

    def with_means(self, rows: np.ndarray, name: str, means: np.ndarray) -> np.ndarray:
        """Returns encoded rows with other means `[n]` of the texts of a column."""
        names = [column.name for column in self.schema.features]
        column = self.schema.features[names.index(name)]
        place = sum(map(_width, self.schema.features[: names.index(name)]))
        buckets = rows[:, place].astype(np.int64) % (column.buckets + 1)
        rows = rows.copy()
        rows[:, place] = _means(column).encode(buckets, means)
        return rows

    def decode(self, rows: ArrayLike) -> tuple[Structure, Tensor]:
        """Returns the model inputs and the targets of rows `[n, width]`."""
        rows = tf.convert_to_tensor(rows)
        targets = self.targets(rows)
        plain = not any(column.precise for column in self.schema.features)
        if self.schema.input_format == "matrix" and plain:
            return rows[:, : len(self.schema.features)], targets
        inputs, place = {}, 0
        for column in self.schema.features:
            width = _width(column)
            inputs[column.name] = _decode_column(column, rows[:, place : place + width])
            place += width
        if self.schema.input_format == "matrix":
            numbers = [tf.cast(column, tf.float64) for column in inputs.values()]
            return tf.stack(numbers, axis=-1), targets
        return inputs, targets

    def targets(self, rows: Tensor) -> Tensor:
        """Returns the targets of rows `[n, width]`."""
        if self.schema.task == "classification":
            return tf.cast(rows[:, -1], tf.int32)
        if self.schema.target.precise:
            return _joined(rows[:, -2:])[:, tf.newaxis]
        return rows[:, -1:]


def _means(column: Column) -> TextMeans:
    return TextMeans(column.buckets, column.codes, column.means)


def _width(column: Column) -> int:
    return 2 if column.kind == "date" or column.precise else 1


def _split(numbers: np.ndarray) -> list[np.ndarray]:
    """Returns float64 numbers in single precision, and what is left of them."""
    single = numbers.astype(np.float32)
    return [single, numbers - single]


def _joined(parts: Tensor) -> Tensor:
    """Returns the float64 numbers `[n]` of parts `[n, 2]`."""
    return tf.reduce_sum(tf.cast(parts, tf.float64), axis=-1)


def _encode_column(column: Column, parsed: ParsedColumn) -> list[np.ndarray]:
    if column.kind == "numeric":
        return _split(parsed.values) if column.precise else [parsed.values]
    if column.kind == "date":
        parts = np.divmod(np.where(parsed.missing, 0, parsed.values), _DAY)
        return [np.where(parsed.missing, np.nan, part) for part in parts]
    texts = parsed.texts
    if column.buckets:
        given = texts.to_numpy(zero_copy_only=False)
        codes = text_bucket(given, column.buckets)
        if column.means:
            known = _means(column)
            buckets, means = known.lookup(tf.constant(given, tf.string), codes)
            codes = known.encode(buckets.numpy(), means.numpy())
    else:
        listed = pa.array(column.categories, texts.type)
        codes = pc.index_in(texts, value_set=listed).fill_null(len(listed))
    return [np.asarray(codes)[parsed.values]]


def _decode_column(column: Column, numbers: Tensor) -> Tensor:
    if column.kind == "date":
        missing = tf.math.is_nan(numbers[:, 0])
        day, second = (
            tf.cast(tf.where(missing, 0.0, numbers[:, part]), tf.int64)
            for part in (0, 1)
        )
        least = tf.constant(MISSING_DATE, tf.int64)
        return tf.where(missing, least, _DAY * day + second)
    if column.kind == "numeric":
        return _joined(numbers) if column.precise else numbers[:, 0]
    if column.means:
        texts = tf.constant(_means(column).texts_of_rows)
    elif column.buckets:
        texts = tf.constant(_texts_of_buckets(column.buckets))
    else:
        # This text is longer than every category, so it equals none.
        other = "\0" * (1 + max(map(len, column.categories), default=0))
        texts = tf.constant([*column.categories, other])
    return tf.gather(texts, tf.cast(numbers[:, 0], tf.int32))


@functools.cache
def _texts_of_buckets(buckets: int) -> list[str]:
    """Returns a text of each bucket, and the empty text."""
    texts: dict[int, str] = {buckets: ""}
    number = 0
    with tf.init_scope():
        while len(texts) <= buckets:
            tried = [str(number + more) for more in range(8 * buckets)]
            found = text_bucket(tf.constant(tried), buckets).numpy().tolist()
            texts = {**dict(zip(found, tried, strict=True)), **texts}
            number += len(tried)
    return [texts[bucket] for bucket in range(buckets + 1)]
