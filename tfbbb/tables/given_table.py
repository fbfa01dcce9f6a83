"""Conversion of a program's tables to Arrow tables."""

from collections.abc import Mapping
from typing import Any, cast

import pyarrow as pa

from tfbbb.base.types import TableLike
from tfbbb.tables.column_names import check_column_names
from tfbbb.tables.column_source import ColumnSource
from tfbbb.tables.given_column import convert_column, convert_dictionary
from tfbbb.tables.table_error import TableError


def as_source(given: TableLike) -> ColumnSource:
    """Converts a table to a `ColumnSource`, whose columns can be read one by one.

    Example:
    >>> as_source({"x": [1.0, None], "y": ["a", "b"]}).column_names
    ['x', 'y']
    """
    if isinstance(given, pa.Table):
        return _convert_dictionaries(given)
    if not isinstance(given, pa.RecordBatch) and hasattr(given, "column_names"):
        return cast(ColumnSource, given)
    try:
        table = _convert(given)
    except TableError:
        raise
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TableError(f"The table cannot be read: {error}") from None
    if table is None:
        raise TableError(
            "A table must be one of pyarrow, pandas or polars, a mapping from column "
            "names to values, or a list of rows as mappings; an array has no column "
            "names, and `tfbbb.tables.read_table` reads a file. "
            f"Received: {type(given).__name__}"
        )
    return _convert_dictionaries(table)


def is_table(value: object) -> bool:
    """Whether a value is a table of pyarrow, pandas, polars or a similar library."""
    return hasattr(value, "__arrow_c_stream__") or _is_pandas(value)


def as_arrow(table: TableLike) -> pa.Table:
    """Converts a table to pyarrow; the index of a pandas frame is dropped."""
    return _from_pandas(table) if _is_pandas(table) else pa.table(table)


def _convert(given: TableLike) -> pa.Table | None:
    if isinstance(given, Mapping):
        return pa.table(
            {str(name): convert_column(str(name), given[name]) for name in given}
        )
    if isinstance(given, list | tuple):
        if not (given and all(isinstance(row, Mapping) for row in given)):
            return None
        names = dict.fromkeys(name for row in given for name in row)
        return _convert({name: [row.get(name) for row in given] for name in names})
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    has_columns = not _is_pandas(given) or hasattr(given, "columns")
    return as_arrow(given) if is_table(given) and has_columns else None


def _from_pandas(frame: Any) -> pa.Table:
    names = [str(name) for name in frame.columns]
    check_column_names(names, where="The table cannot be read: ")
    columns = [
        convert_column(name, frame.iloc[:, place]) for place, name in enumerate(names)
    ]
    return pa.table(columns, names=names)


def _convert_dictionaries(table: pa.Table) -> pa.Table:
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = convert_dictionary(field.name, table.column(place))
            table = table.set_column(place, field.name, column)
    return table


def _is_pandas(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas"
