"""A column as times, by which rows are ordered."""

import numpy as np
import pyarrow as pa

from tfbbb.tables.cells import Cells
from tfbbb.tables.column_source import ColumnSource
from tfbbb.tables.notation_choice import choose_notation
from tfbbb.tables.notations.boolean import BooleanNotation
from tfbbb.tables.notations.date import DateNotation
from tfbbb.tables.override import Override
from tfbbb.tables.parsed_column import ParsedColumn
from tfbbb.tables.table_error import TableError
from tfbbb.tables.values import first_row


def read_times(
    table: ColumnSource, name: str, override: Override | None = None
) -> np.ndarray:
    """Returns numbers `[n]` that are ordered as the values of a column are in time.

    A column of times holds numbers (such as years, or a count of days), dates, times,
    or texts in any notation of these. Times without a zone count as UTC.

    Example:

    >>> sold = pa.table({"sold": ["2024-03-01", "2023-12-24T18:00", "2024-02-29"]})
    >>> np.argsort(read_times(sold, "sold")).tolist()
    [1, 2, 0]
    """
    if override is not None and override.kind == "ignore":
        override = None
    cells = Cells.read(table, name)
    if override is not None:
        cells = cells.as_written
    if cells.kind == "categorical":
        values = _read_texts(cells, override)
    elif pa.types.is_temporal(cells.type):
        values, missing = _ticks(cells.values)
        _check_none_missing(name, missing)
    elif cells.is_boolean:
        raise _of_booleans(name)
    else:
        values = ParsedColumn.parse(cells, "numeric").values
    _check_none_missing(name, np.isnan(values))
    return values


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


def _ticks(column: pa.Array | pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the integers of dates, times or durations, and which are missing."""
    type_ = column.type
    if pa.types.is_date32(type_) or pa.types.is_time32(type_):
        column = column.cast(pa.int32())
    ticks, missing = column.cast(pa.int64()).fill_null(0), column.is_null()
    return np.asarray(ticks), np.asarray(missing)


def _read_texts(cells: Cells, override: Override | None) -> np.ndarray:
    kind, notation, _ = choose_notation(cells, override)
    if isinstance(notation, BooleanNotation):
        raise _of_booleans(cells.name)
    texts = cells.texts
    if kind == "categorical":
        row = first_row(texts.parse(DateNotation()).unreadable)
        raise TableError(
            f"The time column {cells.name!r} has the text "
            f"{texts.text(row)!r} in row {row}; it must hold "
            "numbers, or dates and times such as 2024-02-29 or 2024-02-29T18:30:00Z."
        )
    if kind == "date" and override is None:
        # Arrow keeps fractions of a second, which the notation drops.
        for type_ in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
            try:
                ticks, _ = _ticks(texts.trimmed.cast(type_))
            except pa.ArrowInvalid:
                continue
            return texts.spread(ticks)
    return ParsedColumn.parse(cells, kind, notation).numbers
