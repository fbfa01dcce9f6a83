"""Tables of a program as Arrow tables."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa

from tfbbb.data.column_source import ColumnSource
from tfbbb.data.table_error import TableError


def as_source(given: Any) -> ColumnSource:
    """Returns a table whose columns can be read one by one.

    Example:
    >>> as_source({"x": [1.0, None], "y": ["a", "b"]}).column_names
    ['x', 'y']

    Args:
        given: A table of pyarrow, pandas, polars or their like, a mapping from column
            names to values, or a list of rows that map column names to values. The
            index of a pandas frame is left out. A table on disk stays what it is.

    Raises:
        TableError: It is none of these, or pyarrow can't hold the values.
    """
    if isinstance(given, pa.Table):
        return _without_dictionaries(given)
    if not isinstance(given, pa.RecordBatch) and hasattr(given, "column_names"):
        return cast(ColumnSource, given)
    try:
        table = _converted(given)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TableError(f"The table can't be read: {error}") from None
    if table is None:
        raise TableError(
            "A table must be one of pyarrow, pandas or polars, a mapping from column "
            "names to values, or a list of rows as mappings; an array has no column "
            "names, and `tfbbb.data.read_table` reads a file. "
            f"Received: {type(given).__name__}"
        )
    return _without_dictionaries(table)


def is_table(value: Any) -> bool:
    """Whether a value is a table of pyarrow, pandas, polars or their like."""
    return hasattr(value, "__arrow_c_stream__") or _is_pandas(value)


def as_arrow(table: Any) -> pa.Table:
    """The same table as one of pyarrow; the index of a pandas frame is left out."""
    if _is_pandas(table):
        return pa.Table.from_pandas(table, preserve_index=False)
    return pa.table(table)


def _converted(given: Any) -> pa.Table | None:
    if isinstance(given, Mapping):
        return pa.table({str(name): _array(given[name]) for name in given})
    if isinstance(given, list | tuple):
        if not (given and all(isinstance(row, Mapping) for row in given)):
            return None
        names = dict.fromkeys(name for row in given for name in row)
        return _converted({name: [row.get(name) for row in given] for name in names})
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    has_columns = not _is_pandas(given) or hasattr(given, "columns")
    return as_arrow(given) if is_table(given) and has_columns else None


def _array(values: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    # A column [n, 1] is one of n values.
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    return pa.array(values, from_pandas=True)


def _without_dictionaries(table: pa.Table) -> pa.Table:
    """Returns the table with categories of pandas as the values that they stand for."""
    schema = table.schema
    for place, field in enumerate(schema):
        if pa.types.is_dictionary(field.type):
            schema = schema.set(place, field.with_type(field.type.value_type))
    return table if schema is table.schema else table.cast(schema)


def _is_pandas(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas"
