"""What the readers of columns share: missing dates, numbers of rows, string views."""

from typing import TypeVar

import numpy as np
import pyarrow as pa

Batch = TypeVar("Batch", pa.RecordBatch, pa.Table)

# In a column of dates, which are integers; as NumPy's NaT.
MISSING_DATE = int(np.iinfo(np.int64).min)


def first_row(marked: np.ndarray) -> int:
    """Returns the number, from 1, of the first marked row."""
    return int(np.argmax(marked)) + 1


def drop_missing(values: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
    """Returns the values that are not missing, without a copy if none is missing."""
    missing = np.isnan(values) if missing is None else missing
    return values[~missing] if missing.any() else values


def cell_text(value: object) -> str:
    """Writes a value as a cell: a whole number without a fraction, `true`, `false`."""
    if isinstance(value, bool | np.bool):
        return str(bool(value)).lower()
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def count_cells(number: int, one: str = "", many: str = "") -> str:
    """Returns `1 cell` or `2 cells`, with a verb for one and for many."""
    counted = f"1 cell {one}" if number == 1 else f"{number} cells {many}"
    return counted.rstrip()


def without_views(rows: Batch) -> Batch:
    """Converts columns of string views, as Polars writes them, to strings.

    Arrow does not support `take` of string views yet.
    """
    schema = rows.schema
    for place, field in enumerate(schema):
        if pa.types.is_string_view(field.type):
            schema = schema.set(place, field.with_type(pa.string()))
    return rows if schema is rows.schema else rows.cast(schema)


def are_numbers(type_: pa.DataType) -> bool:
    """Whether the values of a type of Arrow are numbers or booleans."""
    types = pa.types
    return bool(
        types.is_integer(type_)
        or types.is_floating(type_)
        or types.is_decimal(type_)
        or types.is_boolean(type_)
    )


def are_texts(type_: pa.DataType) -> bool:
    """Whether the values of a type of Arrow are texts."""
    types = pa.types
    return bool(
        types.is_string(type_)
        or types.is_large_string(type_)
        or types.is_string_view(type_)
    )
