"""Encoding of training rows as float32 numbers."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import tensorflow as tf

from tfbbb.data.column import Column
from tfbbb.data.schema import Schema


class RowLayout:
    """Encodes a training row as float32 numbers: its features, then its target.

    A text is encoded as the index of its category; any other text gets the index after
    the last category. There are at most 1000 categories or classes, so that each index
    is exact in single precision.

    Example:

    >>> from tfbbb.data import samples
    >>> table = samples.diabetes()
    >>> layout = RowLayout(Schema.infer(table, "progression"))
    >>> layout.encode(table).shape
    (442, 11)
    >>> inputs, targets = layout.decode(layout.encode(table))
    >>> inputs.shape, targets.shape
    (TensorShape([442, 10]), TensorShape([442, 1]))

    Args:
        schema: Schema of the training table.
    """

    def __init__(self, schema: Schema):
        self.schema = schema

    @property
    def width(self) -> int:
        """Number of float32 numbers of a row."""
        return len(self.schema.features) + 1

    def encode(self, table: pa.Table) -> np.ndarray:
        """Returns the rows of a table, float32 `[n, width]`.

        Raises:
            TableError: The table does not fit the schema.
        """
        columns = [_encode_column(column, table) for column in self.schema.features]
        targets = self.schema.targets(table).reshape(-1)
        return np.stack(
            [*columns, targets], axis=-1, dtype=np.float32, casting="unsafe"
        )

    def decode(self, rows: Any) -> tuple[Any, tf.Tensor]:
        """Returns the model inputs and the targets of rows `[n, width]`."""
        rows = tf.convert_to_tensor(rows)
        targets = self.targets(rows)
        if self.schema.input_format == "matrix":
            return rows[:, :-1], targets
        inputs = {
            column.name: _decode_column(column, rows[:, place])
            for place, column in enumerate(self.schema.features)
        }
        return inputs, targets

    def targets(self, rows: Any) -> Any:
        """Returns the targets of rows `[n, width]`."""
        if self.schema.task == "classification":
            return tf.cast(rows[:, -1], tf.int32)
        return rows[:, -1:]


def _encode_column(column: Column, table: pa.Table) -> np.ndarray:
    if column.kind == "numeric":
        return column.values(table)
    texts = table.column(column.name).cast(pa.string()).fill_null("")
    places = pa.compute.index_in(
        texts, value_set=pa.array(column.categories, pa.string())
    )
    return places.fill_null(len(column.categories)).to_numpy()


def _decode_column(column: Column, numbers: Any) -> Any:
    if column.kind == "numeric":
        return numbers
    # This text is longer than every category, so it equals none.
    other = "\0" * (1 + max(map(len, column.categories), default=0))
    texts = tf.constant([*column.categories, other])
    return tf.gather(texts, tf.cast(numbers, tf.int32))
