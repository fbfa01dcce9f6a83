"""A column as times, by which rows are ordered."""

import numpy as np
import pyarrow as pa

from tfbbb.tables.column import choose_notation
from tfbbb.tables.column_source import ColumnSource
from tfbbb.tables.notations.boolean import BooleanNotation
from tfbbb.tables.notations.date import DateNotation
from tfbbb.tables.notations.notation import Texts
from tfbbb.tables.notations.text import TextNotation
from tfbbb.tables.override import Override
from tfbbb.tables.table_error import TableError
from tfbbb.tables.values import (
    column_kind,
    first_row,
    read_numbers,
)


def read_times(
    table: ColumnSource, name: str, override: Override | None = None
) -> np.ndarray:
    """Returns numbers `[n]` that are ordered as the values of a column are in time.

    A column of times holds numbers (such as years, or a count of days), dates, times,
    or texts in any notation of these. Times without a zone count as UTC.

    Args:
        table: Table with a column of this name.
        name: Name of the column.
        override: What the column is, in place of what its cells suggest.

    Raises:
        TableError: A value is missing, or is no time.

    Example:

    >>> sold = pa.table({"sold": ["2024-03-01", "2023-12-24T18:00", "2024-02-29"]})
    >>> np.argsort(read_times(sold, "sold")).tolist()
    [1, 2, 0]
    """
    column = table.column(name)
    type_ = column.type.value_type if _is_dictionary(column) else column.type
    if column_kind(table, name) == "categorical":
        values = _read_texts(table, name, override)
    elif pa.types.is_temporal(type_):
        values, missing = _ticks(column.cast(type_))
        _check_none_missing(name, missing)
    elif pa.types.is_boolean(type_):
        raise _of_booleans(name)
    else:
        values = read_numbers(table, name)
    _check_none_missing(name, np.isnan(values))
    return values


def _is_dictionary(column: pa.ChunkedArray) -> bool:
    return pa.types.is_dictionary(column.type)


def _of_booleans(name: str) -> TableError:
    return TableError(
        f"The time column {name!r} holds true and false; name a column of numbers, "
        "dates or times."
    )


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


def _read_texts(
    table: ColumnSource, name: str, override: Override | None
) -> np.ndarray:
    notation, _ = choose_notation(table, name, override)
    if isinstance(notation, BooleanNotation):
        raise _of_booleans(name)
    if notation is None or isinstance(notation, TextNotation):
        texts = Texts.of(table.column(name))
        row = first_row(texts.parse(DateNotation()).unreadable)
        raise TableError(
            f"The time column {name!r} has the text {texts.values[row - 1].as_py()!r} "
            f"in row {row}; it must hold numbers, or dates and times such as "
            "2024-02-29 or 2024-02-29T18:30:00Z."
        )
    if isinstance(notation, DateNotation) and override is None:
        # Arrow keeps fractions of a second, which the notation drops.
        texts = Texts.of(table.column(name))
        for type_ in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
            try:
                return _ticks(pa.chunked_array([texts.values.cast(type_)]))[0]
            except pa.ArrowInvalid:
                continue
    return read_numbers(table, name, notation)
