"""A column as times, by which rows are ordered."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute

from tfbbb.data.column_source import ColumnSource
from tfbbb.data.table_error import TableError
from tfbbb.data.values import first_row, number_texts, read_numbers

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_times(table: ColumnSource, name: str) -> np.ndarray:
    """Returns numbers `[n]` that are ordered as the values of a column are in time.

    A column of times holds numbers (such as years, or a count of days), dates, times,
    or texts as ISO 8601 writes them. Times without a zone count as UTC.

    Raises:
        TableError: A value is missing, or is no time.

    Example:

    >>> sold = pa.table({"sold": ["2024-03-01", "2023-12-24T18:00", "2024-02-29"]})
    >>> np.argsort(read_times(sold, "sold")).tolist()
    [1, 2, 0]
    """
    column = table.column(name)
    type_ = column.type.value_type if _is_dictionary(column) else column.type
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        values = _read_texts(table, name)
    elif pa.types.is_temporal(type_):
        values, missing = _ticks(column.cast(type_))
        _check_none_missing(name, missing)
    elif pa.types.is_boolean(type_):
        raise TableError(
            f"The time column {name!r} holds true and false; name a column of numbers, "
            "dates or times."
        )
    else:
        values = read_numbers(table, name)
    _check_none_missing(name, np.isnan(values))
    return values


def _is_dictionary(column: pa.ChunkedArray) -> bool:
    return pa.types.is_dictionary(column.type)


def _check_none_missing(name: str, missing: np.ndarray) -> None:
    if missing.any():
        raise TableError(
            f"The time column {name!r} has no value in row {first_row(missing)}; fill "
            "it in, or leave the rows without a time out."
        )


def _ticks(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the integers of dates, times or durations, and which are missing."""
    type_ = column.type
    if pa.types.is_date32(type_) or pa.types.is_time32(type_):
        column = column.cast(pa.int32())
    return column.cast(pa.int64()).fill_null(0).to_numpy(), column.is_null().to_numpy()


def _read_texts(table: ColumnSource, name: str) -> np.ndarray:
    if number_texts(table, name).all():
        return read_numbers(table, name)
    texts = pa.compute.utf8_trim_whitespace(table.column(name).cast(pa.string()))
    missing = pa.compute.equal(texts.fill_null(""), "").to_numpy()
    _check_none_missing(name, missing)
    for type_ in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return _ticks(texts.cast(type_))[0]
        except pa.ArrowInvalid:
            continue
    # Arrow reads columns that all have a zone, or none. Python reads each text.
    values = np.empty(len(texts), np.int64)
    for row, text in enumerate(texts.to_pylist()):
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise TableError(
                f"The time column {name!r} has the text {text!r} in row {row + 1}; it "
                "must hold numbers, or dates and times such as 2024-02-29 or "
                "2024-02-29T18:30:00Z."
            ) from None
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        values[row] = round((time - _EPOCH).total_seconds() * 1e6)
    return values
