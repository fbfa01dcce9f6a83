"""Statistics of one column, summed over batches."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.base.types import JsonList, JsonObject
from tfbbb.tables.notations.missing_marks import are_missing
from tfbbb.tables.plain_values import common_type, of_type

# Reads a block of cells as values, of a type of its own.
Reader = Callable[[pa.Array], pa.Array]

_is = pa.types
_NAMES = {
    "boolean": [_is.is_boolean],
    "number": [_is.is_integer, _is.is_floating, _is.is_decimal, _is.is_null],
    "text": [_is.is_string, _is.is_large_string, _is.is_string_view],
    "date": [_is.is_temporal],
}

_MOST_DISTINCT = 1000
_LONGEST_COUNTED = 256
_MOST_COMMON = 10
_CELLS = 4096
_BINS = 20


def column_type(type_: pa.DataType) -> str:
    """Returns the service's name for the type of a column."""
    for name, tests in _NAMES.items():
        if any(is_of_type(type_) for is_of_type in tests):
            return name
    return "other"


class ColumnStatistics:
    """Statistics of a column, from its batches, in one pass and bounded memory.

    Later batches may widen the type of the values. Mean and variance are updated as in
    Chan, Golub and LeVeque (1979). Numbers that are infinite in single precision are in
    no figure but the number of distinct values.
    """

    def __init__(self, name: str, read: Reader = lambda cells: cells) -> None:
        self.name = name
        self._read = read
        self._types: set[pa.DataType] = set()
        self._missing = 0
        # None if there are too many distinct cells to count.
        self._counts: dict[Any, int] | None = {}
        # Of the finite numbers, and of dates.
        self._num_finite = 0
        self._mean = self._squares = 0.0
        self._first: Any = None
        self._last: Any = None
        self._histogram: Histogram | None = None

    def add(self, cells: pa.Array) -> None:
        """Adds the next cells."""
        if pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_decode()
        values = self._read(cells)
        self._cell_type = cells.type
        self._types.add(values.type)
        known = _are_known(values)
        num_known = pc.sum(known).as_py() or 0
        self._missing += len(cells) - num_known
        kind = column_type(self._type)
        if not num_known or kind == "other":
            return
        self._count(cells.filter(known))
        # Before a wider type may come that has no axis.
        if kind == "number":
            self._add_numbers(values.filter(known).cast(pa.float64(), safe=False))
        elif kind == "date":
            self._add_dates(values.filter(known).cast(self._type))

    def figures(self) -> JsonObject:
        """Returns the statistics of the column."""
        kind, counts = column_type(self._type), self._counts_of_values()
        figures: JsonObject = {
            "name": self.name,
            "type": kind,
            "missing": self._missing,
            "distinct": None if counts is None or kind == "other" else len(counts),
        }
        if kind == "number":
            finite = self._num_finite
            figures |= {
                "min": self._first,
                "max": self._last,
                "mean": self._mean if finite else None,
                "std": math.sqrt(self._squares / finite) if finite else None,
            }
        elif kind == "date":
            bounds = (_text(x, self._type) for x in (self._first, self._last))
            figures |= dict(zip(("min", "max"), bounds, strict=True))
        if kind in ("number", "date"):
            figures["histogram"] = self._describe_histogram(kind, counts)
        elif kind in ("text", "boolean"):
            common = sorted((counts or {}).items(), key=lambda item: -item[1])
            figures["most_common"] = [list(item) for item in common[:_MOST_COMMON]]
        return figures

    @property
    def _type(self) -> pa.DataType:
        """The type of all values so far."""
        return common_type(self._types)

    def _count(self, cells: pa.Array) -> None:
        """Counts the distinct cells, while there are not too many or too long ones."""
        if self._counts is None:
            return
        if column_type(cells.type) == "text":
            longest = pc.max(pc.utf8_length(cells.cast(pa.large_string()))).as_py()
            if longest > _LONGEST_COUNTED:
                self._counts = None
                return
        counted = pc.value_counts(cells)
        if len(counted) <= _MOST_DISTINCT:
            for entry in counted.to_pylist():
                value = entry["values"]
                self._counts[value] = self._counts.get(value, 0) + entry["counts"]
        if max(len(counted), len(self._counts)) > _MOST_DISTINCT:
            self._counts = None

    def _counts_of_values(self) -> dict[Any, int] | None:
        """Returns the counts of values that cells stand for, such as 1 for 1.0."""
        if not self._counts:
            return self._counts
        cells = pa.array(list(self._counts), self._cell_type)
        values = of_type(self._read(cells), cells, self._type)
        if column_type(self._type) == "number":
            values = values.cast(pa.float64(), safe=False)
        counts: dict[Any, int] = {}
        pairs = zip(values.to_pylist(), self._counts.values(), strict=True)
        for value, count in pairs:
            counts[value] = counts.get(value, 0) + count
        return counts

    def _add_numbers(self, values: pa.Array) -> None:
        numbers = _as_numbers(values)
        numbers = numbers[_are_finite(numbers)]
        if not len(numbers):
            return
        known = [] if self._first is None else [self._first, self._last]
        self._first = min([*known, float(numbers.min())])
        self._last = max([*known, float(numbers.max())])
        self._add_to_histogram(numbers)
        before, more = self._num_finite, len(numbers)
        mean = float(numbers.mean())
        shift = mean - self._mean
        self._num_finite = before + more
        self._mean += shift * more / self._num_finite
        self._squares += float(np.square(numbers - mean).sum())
        self._squares += shift**2 * before * more / self._num_finite

    def _add_dates(self, dates: pa.Array) -> None:
        self._add_to_histogram(_as_numbers(dates))
        if pa.types.is_duration(dates.type):
            return  # Arrow does not compare durations.
        if self._first is not None:
            earlier = [self._first.cast(dates.type), self._last.cast(dates.type)]
            dates = pa.concat_arrays([dates, pa.array(earlier, dates.type)])
        bounds = pc.min_max(dates)
        self._first, self._last = bounds["min"], bounds["max"]

    def _add_to_histogram(self, numbers: np.ndarray) -> None:
        if len(numbers):
            self._histogram = self._histogram or Histogram(numbers)
            self._histogram.add(numbers)

    def _describe_histogram(
        self, kind: str, distinct: dict[Any, int] | None
    ) -> JsonObject | None:
        if self._histogram is None:
            return None
        if distinct is None:
            edges, counts = self._histogram.bins()
        else:
            type_ = pa.float64() if kind == "number" else self._type
            values = _as_numbers(pa.array(list(distinct), type_))
            finite = _are_finite(values)
            times = np.array(list(distinct.values()))
            edges, counts = histogram_of(values[finite], times[finite])
        shown: JsonList = edges.tolist()
        if kind == "date":
            shown = [str(np.datetime64(round(edge), "s")) for edge in shown]
        return {"edges": shown, "counts": counts.tolist()}


class Histogram:
    """Counts numbers in cells of equal width, whose range doubles when it is too small.

    When the range doubles, cells are joined in pairs, so that every count stays exact.
    """

    def __init__(self, values: np.ndarray) -> None:
        self._least, self._greatest = float(values.min()), float(values.max())
        self._start = self._least
        # Equal numbers have no range yet.
        least_width = float(np.spacing(max(abs(self._least), abs(self._greatest))))
        self._width = max((self._greatest - self._least) / _CELLS, least_width)
        self._counts = np.zeros(_CELLS, np.int64)

    def add(self, values: np.ndarray) -> None:
        """Adds finite numbers."""
        least, greatest = float(values.min()), float(values.max())
        self._least = min(self._least, least)
        self._greatest = max(self._greatest, greatest)
        while greatest > self._start + _CELLS * self._width:
            self._double(downwards=False)
        while least < self._start:
            self._double(downwards=True)
        self._counts += np.bincount(self._cells(values), minlength=_CELLS)

    def bins(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the edges of about 20 bins of equal width, and their counts."""
        first, last = self._cells(np.array([self._least, self._greatest]))
        size = -(-(last + 1 - first) // _BINS)
        starts = np.arange(first, last + 1, size)
        counts = np.add.reduceat(self._counts[: last + 1], starts)
        edges = self._start + self._width * np.append(starts, last + 1)
        edges[0], edges[-1] = self._least, self._greatest
        return edges, counts

    def _cells(self, values: np.ndarray) -> np.ndarray:
        cells = np.floor((values - self._start) / self._width).astype(np.int64)
        # The greatest number, and those that rounding puts beyond their cell.
        return np.clip(cells, 0, _CELLS - 1)

    def _double(self, *, downwards: bool) -> None:
        pairs = self._counts.reshape(-1, 2).sum(axis=1)
        empty = np.zeros_like(pairs)
        if downwards:
            self._start -= _CELLS * self._width
            pairs, empty = empty, pairs
        self._counts = np.concatenate([pairs, empty])
        self._width *= 2.0


def histogram_of(values: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns edges and counts of at most 20 bins of all distinct numbers."""
    least, greatest = float(values.min()), float(values.max())
    if np.all(values == np.round(values)) and greatest - least < _BINS:
        # One bin around each whole number.
        edges = np.arange(least, greatest + 2) - 0.5
        return edges, np.histogram(values, edges, weights=counts)[0].astype(np.int64)
    found, edges = np.histogram(values, _BINS, (least, greatest), weights=counts)
    return edges, found.astype(np.int64)


def _are_known(values: pa.Array) -> pa.Array:
    kind = column_type(values.type)
    if kind == "number":
        numbers = values.cast(pa.float64(), safe=False)
        return pc.fill_null(pc.invert(pc.is_nan(numbers)), False)
    if kind == "text":
        trimmed = pc.utf8_trim_whitespace(values.cast(pa.large_string()))
        return pc.invert(are_missing(trimmed, in_text=True))
    return values.is_valid()


def _as_numbers(values: pa.Array) -> np.ndarray:
    """Returns numbers, dates in seconds since 1970, and nothing for times of day."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.timestamp("s"))
    if pa.types.is_timestamp(values.type):
        ticks = values.cast(pa.timestamp("us", values.type.tz), safe=False)
        seconds: np.ndarray = ticks.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return seconds / 1e6
    if not pa.types.is_floating(values.type):
        return np.zeros(0)
    numbers: np.ndarray = values.to_numpy(zero_copy_only=False)
    return numbers


def _are_finite(numbers: np.ndarray) -> np.ndarray:
    """Returns which numbers single precision can hold."""
    with np.errstate(over="ignore"):
        finite: np.ndarray = np.isfinite(numbers.astype(np.float32))
    return finite


def _text(value: pa.Scalar | None, type_: pa.DataType) -> str | None:
    return None if value is None else str(value.cast(type_).cast(pa.string()).as_py())
