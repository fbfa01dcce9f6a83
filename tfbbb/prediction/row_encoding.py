"""Rows as numbers whose differences can be compared between columns.

NumPy encodes arrays, and TensorFlow tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from tfbbb.base.array_library import numpy_of
from tfbbb.base.lazy import tf
from tfbbb.base.nested import leaves
from tfbbb.base.types import ArrayLike, Structure, Tensor
from tfbbb.tables.values import MISSING_DATE

# A hundred rows of so many columns, and the sorted values of these, take 1 MB.
MOST_COLUMNS = 1250
# Codes of texts: float32 represents them exactly.
_CODES = 1 << 24
# The code of the empty text.
_NO_TEXT = np.float64(0x9AE16A3B2F90404F % _CODES)


@dataclass(frozen=True)
class RowEncoding:
    """Encodes rows as numbers in units of standard deviations, and codes.

    A number or date x becomes `asinh((x - center) / unit) / scale`, with the median as
    center and the interquartile range as unit: gaps between values remain, and a few
    large values do not hide those of all others. The scale is the standard deviation of
    the result. A text becomes its hash.

    A missing number becomes the median. Further columns of codes say which numbers are
    missing: one for each column of numbers that lacks some in the training rows, and
    one for all other columns of numbers together.

    Attributes:
        columns: The names of columns in order; None for tensors in the order in which
            Keras flattens them.
        is_text: Whether each column holds texts, [p].
        centers: Of each column, as `units` and `scales`, float64 [p].
        units: The same.
        scales: The same.
        incomplete: The indices of the columns of numbers that lack some.
    """

    columns: tuple[str, ...] | None
    is_text: np.ndarray
    centers: np.ndarray
    units: np.ndarray
    scales: np.ndarray
    incomplete: np.ndarray

    @classmethod
    def fit(
        cls,
        values: np.ndarray,
        is_text: np.ndarray,
        columns: Sequence[str] | None = None,
    ) -> Self:
        """Fits the encoding to values, float64 [n, p], as `row_values` returns them."""
        scaled = [
            (0.0, 1.0, 1.0) if text else _scale(column)
            for column, text in zip(values.T, is_text, strict=True)
        ]
        lacks = ~np.isfinite(values).all(axis=0)
        centers, units, scales = np.transpose(scaled)
        names = None if columns is None else tuple(columns)
        return cls(names, is_text, centers, units, scales, np.flatnonzero(lacks))

    @cached_property
    def is_code(self) -> np.ndarray:
        """Whether each encoded column holds codes, not numbers, [p']."""
        return np.append(self.is_text, np.ones(len(self.incomplete) + 1, bool))

    @cached_property
    def sources(self) -> np.ndarray:
        """The column that each encoded column is about, -1 for several, int64 [p']."""
        own = np.arange(len(self.is_text))
        return np.concatenate([own, self.incomplete, [-1]]).astype(np.int64)

    def __call__(self, inputs: Structure, *, missing: bool = False) -> Tensor:
        """Encodes rows, float32 [n, p'].

        Args:
            inputs: The rows.
            missing: Whether to append which cells are missing, [n, p].
        """
        values, is_text = row_values(inputs, self.columns)
        if not np.array_equal(is_text, self.is_text):
            raise ValueError(
                "Rows must have the columns of the training rows: "
                f"{_described(self.is_text)}. Received: {_described(is_text)}"
            )
        encoded = self.encode(values)
        if not missing:
            return encoded
        xp = numpy_of(values)
        unknown = xp.where(self.is_text, values == _NO_TEXT, ~xp.isfinite(values))
        return xp.concatenate([encoded, xp.asarray(unknown, np.float32)], axis=1)

    def encode(self, values: Tensor) -> Tensor:
        """Encodes values, float64 [n, p], as `row_values` returns them."""
        xp = numpy_of(values)
        numbers = xp.arcsinh((values - self.centers) / self.units) / self.scales
        missing = ~xp.isfinite(values)
        numbers = xp.where(missing, np.float64(0.0), numbers)
        complete = np.ones(len(self.is_text), bool)
        complete[self.incomplete] = False
        others = xp.any(missing & complete, axis=1, keepdims=True)
        flags = [*(missing[:, place, None] for place in self.incomplete), others]
        parts = [
            xp.where(self.is_text, values, numbers),
            *(xp.asarray(flag, np.float64) for flag in flags),
        ]
        return xp.asarray(xp.concatenate(parts, axis=1), np.float32)

    def decode(self, numbers: Tensor) -> tf.Tensor:
        """Returns the values of encoded numbers, float64 [n, p], of [n, p']."""
        numbers = tf.cast(numbers[:, : len(self.is_text)], tf.float64)
        return self.centers + self.units * tf.sinh(numbers * self.scales)


def row_values(
    inputs: Structure, columns: Sequence[str] | None
) -> tuple[Tensor, np.ndarray]:
    """Returns the values of rows as a matrix, and which columns hold texts.

    Returns:
        Values, float64 [n, p], NaN for missing numbers, and codes of texts; whether
        each column holds texts, [p].
    """
    parts, texts = [], []
    for value in _tensors(inputs, columns):
        given = value if hasattr(value, "dtype") else np.asarray(value)
        if not len(given.shape):
            raise ValueError(f"Rows need an axis. Received: {given!r:.100}")
        xp = numpy_of(given)
        codes = _codes(given)
        is_text = codes is not None
        part = xp.asarray(codes if is_text else given, np.float64)
        if given.dtype == np.int64:
            part = xp.where(given == MISSING_DATE, np.float64(np.nan), part)
        width = int(np.prod(part.shape[1:], dtype=int))
        parts.append(xp.reshape(part, [-1, width]))
        texts += [is_text] * width
    return numpy_of(*parts).concatenate(parts, axis=1), np.array(texts, bool)


def _codes(given: ArrayLike) -> Tensor | None:
    """Returns the codes of texts; None for numbers."""
    if not isinstance(given, np.ndarray):
        if given.dtype != tf.string:
            return None
        return tf.strings.to_hash_bucket_fast(given, _CODES)
    if given.dtype.kind not in "OSU":
        return None
    from farmhash import fingerprint64

    values = given.ravel().tolist()
    texts = (value if isinstance(value, bytes) else value.encode() for value in values)
    found = [fingerprint64(text) % _CODES for text in texts]
    return np.array(found, np.int64).reshape(given.shape)


def as_inputs(x: Any) -> Structure:
    """Returns rows as arrays: a data frame as a dictionary of its columns.

    Texts without a value become empty, dates seconds since 1970.
    """
    if not tf.nest.flatten(x):
        raise ValueError(f"Rows need at least one column. Received: {x!r}")
    inputs = _as_arrays(x)
    _check_rows(inputs)
    return inputs


def _check_rows(inputs: Any) -> None:
    named = isinstance(inputs, Mapping)
    columns = inputs.items() if named else enumerate(tf.nest.flatten(inputs))
    first: tuple[Any, int] | None = None
    for name, column in columns:
        if len(column.shape) == 0:
            of_column = f" of column {name!r}" if named else ""
            raise ValueError(f"Rows need an axis. Received: {column!r:.100}{of_column}")
        first = first or (name, len(column))
        if len(column) != first[1]:
            raise ValueError(
                "All columns must have the same number of rows. Received: "
                f"{first[1]} rows of column {first[0]!r}, {len(column)} of {name!r}"
            )


def _as_arrays(x: Any) -> Structure:
    if hasattr(x, "columns") and hasattr(x, "__getitem__"):
        x = {str(name): x[name] for name in x.columns}
    if isinstance(x, Mapping):
        return {name: _as_array(column) for name, column in x.items()}
    if isinstance(x, list | tuple) and np.ndim(tf.nest.flatten(x)[0]) == 0:
        # Rows as lists of numbers.
        return _as_array(x)
    return tf.nest.map_structure(_as_array, x)


def _as_array(column: Any) -> Any:
    if isinstance(column, tf.Tensor):
        return column
    array = np.asarray(column)
    if array.dtype.kind == "M":
        return array.astype("datetime64[s]").astype(np.int64)
    if array.dtype.kind != "O":
        return array
    missing = np.array([value is None or value != value for value in array.flat])
    texts = np.array([isinstance(value, str | bytes) for value in array.flat])
    if texts.any() and (texts | missing).all():
        return np.where(missing.reshape(array.shape), "", array).astype(object)
    return np.where(missing.reshape(array.shape), np.nan, array).astype(np.float64)


def _tensors(inputs: Structure, columns: Sequence[str] | None) -> list[Any]:
    if columns is None:
        return leaves(inputs)
    if not isinstance(inputs, Mapping) or any(name not in inputs for name in columns):
        given = sorted(inputs) if isinstance(inputs, Mapping) else type(inputs).__name__
        raise ValueError(
            f"Rows must be a dictionary with the columns {list(columns)}. "
            f"Received: {given}"
        )
    return [inputs[name] for name in columns]


def _described(is_text: np.ndarray) -> str:
    return f"{len(is_text)} columns, {is_text.sum()} of them texts"


def _scale(column: np.ndarray) -> tuple[float, float, float]:
    """Returns center, unit and scale of a column of numbers."""
    numbers = column[np.isfinite(column)]
    if not len(numbers):
        return 0.0, 1.0, 1.0
    # A number of the column, as missing ones stand for it.
    center = np.quantile(numbers, 0.5, method="lower")
    low, high = np.quantile(numbers, [0.25, 0.75])
    unit = (high - low) or numbers.std() or abs(center) or 1.0
    return center, unit, np.arcsinh((numbers - center) / unit).std() or 1.0
