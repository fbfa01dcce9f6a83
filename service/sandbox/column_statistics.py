"""Statistics of one column, summed over batches."""

import functools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.sandbox.histogram import Histogram, histogram_of
from service.shared.json_types import JsonList, JsonObject
from tfbbb.tables.notations import Notation, infer_notation
from tfbbb.tables.notations.missing_marks import are_missing

_MOST_DISTINCT = 1000
_LONGEST_COUNTED = 256
_MOST_COMMON = 10
# Distinct texts that show how a column is written.
_SAMPLE = 1000
_NUMBER = r"^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def column_type(type_: pa.DataType) -> str:
    """Returns the service's name for the type of a column."""
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
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
    cancellation.
    """

    def __init__(self, name: str, type_: pa.DataType) -> None:
        self.name = name
        self.arrow_type = type_
        self.type = column_type(type_)
        self._value_type = type_
        if pa.types.is_dictionary(type_):
            self._value_type = type_.value_type
        self.num_rows = 0
        self.missing = 0
        self.infinite = 0
        self.minimum = math.inf
        self.maximum = -math.inf
        self.first: Any = None
        self.last: Any = None
        self.numbers_in_text = 0
        self.first_other: str | None = None
        self._sample: dict[str, None] = {}
        self._mean = 0.0
        self._squares = 0.0
        # None if there are too many distinct values to count.
        self._counts: dict[Any, int] | None = {}
        # Of numbers and dates, from the value on that is too much to count.
        self._histogram: Histogram | None = None

    @property
    def known(self) -> int:
        """Number of values that are not missing."""
        return self.num_rows - self.missing

    @property
    def distinct(self) -> int | None:
        """Number of distinct values; None if there are too many."""
        return None if self._counts is None else len(self._counts)

    @functools.cached_property
    def notation(self) -> Notation | None:
        """How the first texts are written; None for categories."""
        if self.type != "text" or not self._sample:
            return None
        texts = pa.array(list(self._sample)[:_SAMPLE], pa.large_string())
        found = infer_notation(texts.filter(pc.invert(are_missing(texts))))
        return found.notation if found.share == 1.0 else None

    def add(self, values: pa.Array) -> None:
        """Adds the next values."""
        self.num_rows += len(values)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if self.type == "number":
            values = self._add_numbers(values)
        elif self.type == "text":
            values = self._add_texts(values)
        else:
            self.missing += values.null_count
        if self.type == "date" and len(values) > values.null_count:
            self._add_dates(values)
        if self.type != "other":
            self._count(values)

    def figures(self) -> JsonObject:
        """Returns the statistics of the column."""
        figures: JsonObject = {
            "name": self.name,
            "type": self.type,
            "missing": self.missing,
            "distinct": self.distinct if self.type != "other" else None,
        }
        if self.type == "number":
            finite = self.known - self.infinite
            deviation = math.sqrt(self._squares / finite) if finite else math.nan
            figures |= {
                "min": _finite(self.minimum),
                "max": _finite(self.maximum),
                "mean": _finite(self._mean) if finite else None,
                "std": _finite(deviation),
            }
        elif self.type == "date":
            figures |= {"min": _text(self.first), "max": _text(self.last)}
        if self.type in ("number", "date"):
            figures["histogram"] = self._describe_histogram()
        elif self.type in ("text", "boolean"):
            if self.notation is not None:
                figures["notation"] = self.notation.to_dict()
            counts = sorted((self._counts or {}).items(), key=lambda item: -item[1])
            figures["most_common"] = [
                [value, count] for value, count in counts[:_MOST_COMMON]
            ]
        return figures

    def _add_numbers(self, values: pa.Array) -> pa.Array:
        numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        known = numbers[~np.isnan(numbers)]
        self.missing += len(numbers) - len(known)
        with np.errstate(over="ignore"):
            finite = known[np.isfinite(known.astype(np.float32))]
        self.infinite += len(known) - len(finite)
        if len(finite):
            self._merge(finite)
        return pa.array(known)

    def _merge(self, values: np.ndarray) -> None:
        before = self.known - self.infinite - len(values)
        mean = float(values.mean())
        shift = mean - self._mean
        total = before + len(values)
        self._mean += shift * len(values) / total
        self._squares += float(np.square(values - mean).sum())
        self._squares += shift**2 * before * len(values) / total
        self.minimum = min(self.minimum, float(values.min()))
        self.maximum = max(self.maximum, float(values.max()))

    def _add_texts(self, values: pa.Array) -> pa.Array:
        values = values.cast(pa.large_string())
        missing = are_missing(pc.utf8_trim_whitespace(values), in_text=True)
        known = values.filter(pc.invert(missing))
        self.missing += len(values) - len(known)
        if self._counts is not None and len(known):
            longest = pc.max(pc.utf8_length(known)).as_py()
            if longest > _LONGEST_COUNTED:
                self._counts = None
        trimmed = pc.utf8_trim_whitespace(known)
        if len(self._sample) < _SAMPLE:
            first = pc.unique(trimmed.slice(0, _SAMPLE)).to_pylist()
            self._sample |= dict.fromkeys(text for text in first if len(text) < 100)
        numeric = pc.match_substring_regex(trimmed, _NUMBER)
        self.numbers_in_text += pc.sum(numeric).as_py() or 0
        others = known.filter(pc.invert(numeric))
        if self.first_other is None and len(others):
            self.first_other = others[0].as_py()[:50]
        return known

    def _add_dates(self, values: pa.Array) -> None:
        if pa.types.is_duration(values.type):
            return  # Arrow does not compare durations.
        bounds = pc.min_max(values)
        first, last = bounds["min"], bounds["max"]
        if self.first is None or pc.less(first, self.first).as_py():
            self.first = first
        if self.last is None or pc.greater(last, self.last).as_py():
            self.last = last

    def _count(self, values: pa.Array) -> None:
        if self._counts is None:
            if self._histogram is not None:
                self._histogram.add(_finite_numbers(values.drop_null())[0])
            return
        counted = pc.value_counts(values.drop_null())
        if len(counted) > _MOST_DISTINCT:
            self._count_in_cells(counted.field("values"), counted.field("counts"))
            return
        for entry in counted.to_pylist():
            value = entry["values"]
            self._counts[value] = self._counts.get(value, 0) + entry["counts"]
        if len(self._counts) > _MOST_DISTINCT:
            self._count_in_cells()

    def _count_in_cells(self, *more: pa.Array) -> None:
        """Counts in cells instead of by value."""
        found = [self._counted_numbers()]
        if self.type in ("number", "date") and more:
            found.append(_finite_numbers(*more))
        self._counts = None
        values, counts = (np.concatenate(parts) for parts in zip(*found, strict=True))
        if len(values) and values.min() < values.max():
            self._histogram = Histogram(values, counts)

    def _counted_numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the distinct numbers or dates that are counted, and their counts."""
        if self.type not in ("number", "date") or not self._counts:
            return np.zeros(0), np.zeros(0, np.int64)
        type_ = pa.float64() if self.type == "number" else self._value_type
        return _finite_numbers(
            pa.array(list(self._counts), type_), pa.array(self._counts.values())
        )

    def _describe_histogram(self) -> JsonObject | None:
        if self._histogram is not None:
            edges, counts = self._histogram.bins()
        else:
            values, counts = self._counted_numbers()
            if not len(values):
                return None
            edges, counts = histogram_of(values, counts)
        shown: JsonList = edges.tolist()
        if self.type == "date":
            shown = [str(np.datetime64(round(edge), "s")) for edge in shown]
        return {"edges": shown, "counts": counts.tolist()}


def _finite_numbers(
    values: pa.Array, counts: pa.Array | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Returns numbers, or dates in seconds since 1970, that single precision can hold.

    Times of day and durations have no place on an axis of dates and are left out.
    """
    if pa.types.is_date(values.type):
        values = values.cast(pa.timestamp("s"))
    if pa.types.is_timestamp(values.type):
        ticks = values.cast(pa.timestamp("us", values.type.tz), safe=False)
        numbers = ticks.cast(pa.int64()).to_numpy(zero_copy_only=False) / 1e6
    elif pa.types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False)
    else:
        numbers = np.zeros(0)
        counts = None
    times = np.ones(len(numbers), np.int64)
    if counts is not None:
        times = counts.to_numpy(zero_copy_only=False).astype(np.int64)
    with np.errstate(over="ignore"):
        finite = np.isfinite(numbers.astype(np.float32))
    return numbers[finite], times[finite]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _text(value: pa.Scalar | None) -> str | None:
    return None if value is None else str(value.cast(pa.string()).as_py())
