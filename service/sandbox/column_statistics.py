"""Statistics of one column, summed over batches."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.sandbox.histogram import Histogram, histogram_of
from tfbbb.base.types import JsonList, JsonObject
from tfbbb.tables.notations.missing_marks import are_missing

_MOST_DISTINCT = 1000
_LONGEST_COUNTED = 256
_MOST_COMMON = 10


def column_type(type_: pa.DataType) -> str:
    """Returns the service's name for the type of a column."""
    if pa.types.is_boolean(type_):
        return "boolean"
    if (
        pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or pa.types.is_decimal(type_)
        or pa.types.is_null(type_)
    ):
        return "number"
    if (
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
    ):
        return "text"
    return "date" if pa.types.is_temporal(type_) else "other"


class ColumnStatistics:
    """Statistics of a column, from its batches, in one pass and bounded memory.

    Mean and variance are updated as in Chan, Golub and LeVeque (1979), without
    cancellation. Numbers that are infinite in single precision are left out of all
    figures but the number of distinct values.
    """

    def __init__(self, name: str, type_: pa.DataType) -> None:
        if pa.types.is_dictionary(type_):
            type_ = type_.value_type
        self.name = name
        self.type = column_type(type_)
        self._value_type = pa.float64() if self.type == "number" else type_
        self._missing = 0
        # None if there are too many distinct values to count.
        self._counts: dict[Any, int] | None = {}
        # Of the finite numbers, and of dates.
        self._num_finite = 0
        self._mean = self._squares = 0.0
        self._first: Any = None
        self._last: Any = None
        self._histogram: Histogram | None = None

    def add(self, values: pa.Array) -> None:
        """Adds the next values."""
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if self.type == "number":
            numbers = values.cast(pa.float64(), safe=False).to_numpy(
                zero_copy_only=False
            )
            known = pa.array(numbers[~np.isnan(numbers)])
        elif self.type == "text":
            values = values.cast(pa.large_string())
            missing = are_missing(pc.utf8_trim_whitespace(values), in_text=True)
            known = values.filter(pc.invert(missing))
        else:
            known = values.drop_null()
        self._missing += len(values) - len(known)
        if not len(known) or self.type == "other":
            return
        self._count(known)
        if self.type in ("number", "date"):
            self._add_to_axis(known)

    def figures(self) -> JsonObject:
        """Returns the statistics of the column."""
        counts = self._counts
        figures: JsonObject = {
            "name": self.name,
            "type": self.type,
            "missing": self._missing,
            "distinct": None if counts is None or self.type == "other" else len(counts),
        }
        if self.type == "number":
            finite = self._num_finite
            figures |= {
                "min": self._first,
                "max": self._last,
                "mean": self._mean if finite else None,
                "std": math.sqrt(self._squares / finite) if finite else None,
            }
        elif self.type == "date":
            figures |= {"min": _text(self._first), "max": _text(self._last)}
        if self.type in ("number", "date"):
            figures["histogram"] = self._describe_histogram()
        elif self.type in ("text", "boolean"):
            common = sorted((counts or {}).items(), key=lambda item: -item[1])
            figures["most_common"] = [list(item) for item in common[:_MOST_COMMON]]
        return figures

    def _count(self, values: pa.Array) -> None:
        """Counts the distinct values, while there are not too many or too long ones."""
        if self._counts is None:
            return
        if self.type == "text":
            longest = pc.max(pc.utf8_length(values)).as_py()
            if longest > _LONGEST_COUNTED:
                self._counts = None
                return
        counted = pc.value_counts(values)
        if len(counted) <= _MOST_DISTINCT:
            for entry in counted.to_pylist():
                value = entry["values"]
                self._counts[value] = self._counts.get(value, 0) + entry["counts"]
        if max(len(counted), len(self._counts)) > _MOST_DISTINCT:
            self._counts = None

    def _add_to_axis(self, values: pa.Array) -> None:
        """Adds numbers or dates to the bounds, the mean and the histogram."""
        numbers = _as_numbers(values)
        numbers = numbers[_are_finite(numbers)]
        if self.type == "date":
            self._add_bounds(values)
        elif len(numbers):
            known = [] if self._first is None else [self._first, self._last]
            self._first = min([*known, float(numbers.min())])
            self._last = max([*known, float(numbers.max())])
            self._add_to_mean(numbers)
        if not len(numbers):
            return
        if self._histogram is None:
            self._histogram = Histogram(numbers)
        else:
            self._histogram.add(numbers)

    def _add_to_mean(self, numbers: np.ndarray) -> None:
        before, more = self._num_finite, len(numbers)
        mean = float(numbers.mean())
        shift = mean - self._mean
        self._num_finite = before + more
        self._mean += shift * more / self._num_finite
        self._squares += float(np.square(numbers - mean).sum())
        self._squares += shift**2 * before * more / self._num_finite

    def _add_bounds(self, dates: pa.Array) -> None:
        if pa.types.is_duration(dates.type):
            return  # Arrow does not compare durations.
        bounds = pc.min_max(dates)
        if self._first is None or pc.less(bounds["min"], self._first).as_py():
            self._first = bounds["min"]
        if self._last is None or pc.greater(bounds["max"], self._last).as_py():
            self._last = bounds["max"]

    def _describe_histogram(self) -> JsonObject | None:
        if self._histogram is None:
            return None
        if self._counts is None:
            edges, counts = self._histogram.bins()
        else:
            values = _as_numbers(pa.array(list(self._counts), self._value_type))
            finite = _are_finite(values)
            times = np.array(list(self._counts.values()))
            edges, counts = histogram_of(values[finite], times[finite])
        shown: JsonList = edges.tolist()
        if self.type == "date":
            shown = [str(np.datetime64(round(edge), "s")) for edge in shown]
        return {"edges": shown, "counts": counts.tolist()}


def _as_numbers(values: pa.Array) -> np.ndarray:
    """Returns numbers as they are, and dates in seconds since 1970.

    Times of day and durations, which have no place on an axis of dates, are left out.
    """
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


def _text(value: pa.Scalar | None) -> str | None:
    return None if value is None else str(value.cast(pa.string()).as_py())
