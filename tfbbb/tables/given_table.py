"""Conversion of a program's tables to Arrow tables."""

from collections.abc import Mapping
from typing import cast

import numpy as np
import pyarrow as pa

from tfbbb.base.types import ArrayLike, TableLike
from tfbbb.tables.column_source import ColumnSource
from tfbbb.tables.table_error import TableError


def as_source(given: TableLike) -> ColumnSource:
    """Converts a table to a `ColumnSource`, whose columns can be read one by one.

    Example:
    >>> as_source({"x": [1.0, None], "y": ["a", "b"]}).column_names
    ['x', 'y']

    Args:
        given: A table of pyarrow, pandas, polars or another library with the Arrow
            interface, a mapping from column names to values, or a list of rows that map
            column names to values. The index of a pandas frame is dropped. A
            `ColumnSource` is returned unchanged.

    Raises:
        TableError: `given` is none of these, or pyarrow cannot hold the values.
    """
    if isinstance(given, pa.Table):
        return _decode_dictionaries(given)
    if not isinstance(given, pa.RecordBatch) and hasattr(given, "column_names"):
        return cast(ColumnSource, given)
    try:
        table = _convert(given)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TableError(f"The table cannot be read: {error}") from None
    if table is None:
        raise TableError(
            "A table must be one of pyarrow, pandas or polars, a mapping from column "
            "names to values, or a list of rows as mappings; an array has no column "
            "names, and `tfbbb.tables.read_table` reads a file. "
            f"Received: {type(given).__name__}"
        )
    return _decode_dictionaries(table)


def is_table(value: object) -> bool:
    """Whether a value is a table of pyarrow, pandas, polars or a similar library."""
    return hasattr(value, "__arrow_c_stream__") or _is_pandas(value)


def as_arrow(table: TableLike) -> pa.Table:
    """Converts a table to pyarrow; the index of a pandas frame is dropped."""
    if _is_pandas(table):
        return pa.Table.from_pandas(table, preserve_index=False)
    return pa.table(table)


def _convert(given: TableLike) -> pa.Table | None:
    if isinstance(given, Mapping):
        return pa.table({str(name): _convert_column(given[name]) for name in given})
    if isinstance(given, list | tuple):
        if not (given and all(isinstance(row, Mapping) for row in given)):
            return None
        names = dict.fromkeys(name for row in given for name in row)
        return _convert({name: [row.get(name) for row in given] for name in names})
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    has_columns = not _is_pandas(given) or hasattr(given, "columns")
    return as_arrow(given) if is_table(given) and has_columns else None


def _convert_column(values: ArrayLike) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    # An array [n, 1] is a column of n values.
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    return pa.array(values, from_pandas=True)


def _decode_dictionaries(table: pa.Table) -> pa.Table:
    """Replaces dictionary-encoded columns, as of pandas categories, by their values."""
    schema = table.schema
    for place, field in enumerate(schema):
        if pa.types.is_dictionary(field.type):
            schema = schema.set(place, field.with_type(field.type.value_type))
    return table if schema is table.schema else table.cast(schema)


def _is_pandas(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas"
