"""Rows as numbers whose differences can be compared between columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import tensorflow as tf

from tfbbb.base.types import Structure, Tensor
from tfbbb.tables.values import MISSING_DATE

# Codes of texts: float32 represents them exactly.
_CODES = 1 << 24
# In standard deviations: a missing number is apart from all numbers.
_MISSING_APART = 2.0


@dataclass(frozen=True)
class RowEncoding:
    """Encodes rows as numbers in units of standard deviations, and codes of texts.

    A number or date x becomes `asinh((x - center) / unit) / scale`, with the median as
    center and the interquartile range as unit: gaps between values remain, and a few
    large values do not hide those of all others. The scale is the standard deviation of
    the result. A missing number lies 2 standard deviations below all numbers. A text
    becomes its hash.

    Attributes:
        columns: The names of columns in order; None for tensors in the order in which
            Keras flattens them.
        categorical: Whether each column holds texts, [p].
        centers: Of each column, as `units` and `scales`, float64 [p].
        units: The same.
        scales: The same.
        missing: The encoded missing number of each column, float64 [p].
    """

    columns: tuple[str, ...] | None
    categorical: np.ndarray
    centers: np.ndarray
    units: np.ndarray
    scales: np.ndarray
    missing: np.ndarray

    @classmethod
    def fit(
        cls,
        values: np.ndarray,
        categorical: np.ndarray,
        columns: Sequence[str] | None = None,
    ) -> Self:
        """Fits the encoding to values, float64 [n, p], as `row_values` returns them."""
        scaled = [
            _scale(column, is_text)
            for column, is_text in zip(values.T, categorical, strict=True)
        ]
        return cls(
            None if columns is None else tuple(columns),
            categorical,
            *np.transpose(scaled),
        )

    def __call__(self, inputs: Structure) -> tf.Tensor:
        """Encodes rows, float32 [n, p]."""
        return self.encode(row_values(inputs, self.columns)[0])

    def encode(self, values: Tensor) -> tf.Tensor:
        """Encodes values, float64 [n, p], as `row_values` returns them."""
        numbers = tf.asinh((values - self.centers) / self.units) / self.scales
        numbers = tf.where(tf.math.is_finite(numbers), numbers, self.missing)
        return tf.cast(tf.where(self.categorical, values, numbers), tf.float32)

    def decode(self, numbers: Tensor) -> tf.Tensor:
        """Returns the values of encoded numbers, float64; NaN for missing ones."""
        numbers = tf.cast(numbers, tf.float64)
        values = self.centers + self.units * tf.sinh(numbers * self.scales)
        # A missing number is below all others.
        is_missing = numbers < self.missing + 0.5 * _MISSING_APART
        nan = tf.constant(np.nan, tf.float64)
        return tf.where(is_missing & ~self.categorical, nan, values)


def row_values(
    inputs: Structure, columns: Sequence[str] | None
) -> tuple[tf.Tensor, np.ndarray]:
    """Returns the values of rows as a matrix, and which columns hold texts.

    Args:
        inputs: Tensors or arrays whose leading dimension is the number of rows.
        columns: The order of the tensors by name; None for that of Keras.

    Returns:
        Values, float64 [n, p], NaN for missing numbers, and codes of texts; whether
        each column holds texts, [p].
    """
    if isinstance(inputs, Mapping) and columns is not None:
        tensors = [inputs[name] for name in columns]
    else:
        tensors = tf.nest.flatten(inputs)
        if tensors and np.ndim(tensors[0]) == 0:
            # Rows as lists.
            tensors = [np.asarray(inputs)]
    parts, categorical = [], []
    for given in tensors:
        tensor = tf.convert_to_tensor(given)
        is_text = tensor.dtype == tf.string
        if is_text:
            tensor = tf.strings.to_hash_bucket_fast(tensor, _CODES)
        part = tf.cast(tensor, tf.float64)
        if tensor.dtype == tf.int64 and not is_text:
            part = tf.where(
                tensor == MISSING_DATE, tf.constant(np.nan, part.dtype), part
            )
        width = int(np.prod(part.shape[1:], dtype=int))
        parts.append(tf.reshape(part, [-1, width]))
        categorical += [is_text] * width
    return tf.concat(parts, axis=1), np.array(categorical, bool)


def _scale(column: np.ndarray, is_text: bool) -> tuple[float, float, float, float]:
    """Returns center, unit, scale and the encoded missing number of a column."""
    numbers = column[np.isfinite(column)]
    if is_text or not len(numbers):
        return 0.0, 1.0, 1.0, -_MISSING_APART
    low, center, high = np.quantile(numbers, [0.25, 0.5, 0.75])
    unit = (high - low) or numbers.std() or abs(center) or 1.0
    encoded = np.arcsinh((numbers - center) / unit)
    scale = encoded.std() or 1.0
    return center, unit, scale, encoded.min() / scale - _MISSING_APART
