"""Conversion of a program's tables to Arrow tables."""

import datetime
import decimal
import numbers
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa

from tfbbb.base.types import ArrayLike, TableLike
from tfbbb.tables.cells import Cells
from tfbbb.tables.column_names import ColumnSource, check_column_names
from tfbbb.tables.table_error import TableError
from tfbbb.tables.values import are_numbers, are_texts, cell_text


def as_source(given: TableLike) -> ColumnSource:
    """Converts a table to a `ColumnSource`, whose columns can be read one by one."""
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


_TIMES = (datetime.date, datetime.time)


def convert_column(name: str, values: ArrayLike) -> pa.Array | pa.ChunkedArray:
    """Converts a list, an array, or a column of pandas; mixed values become texts."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    # An array [n, 1] is a column of n values.
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if getattr(getattr(values, "dtype", None), "kind", "") == "c":
        raise TableError(
            f"Column {name!r} holds complex numbers, which a model cannot read; turn "
            "them into columns of real numbers, or leave the column out."
        )
    values = _plain(values)
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        kind = getattr(getattr(values, "dtype", None), "kind", "")
        if not isinstance(values, list | tuple) and kind != "O":
            raise
    return _as_texts(name, values)


def convert_dictionary(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Converts a dictionary-encoded column to a category of texts."""
    type_ = column.type
    texts = are_texts(type_.value_type)
    known = column.unify_dictionaries()
    if not known.num_chunks or not (texts or are_numbers(type_.value_type)):
        return column.cast(type_.value_type)
    levels = known.chunk(0).dictionary
    if not texts:
        levels = Cells(name, pa.chunked_array([levels])).digits.values
    levels = levels.cast(pa.string())
    if isinstance(levels, pa.ChunkedArray):
        levels = levels.combine_chunks()
    return pa.chunked_array(
        [
            pa.DictionaryArray.from_arrays(
                chunk.indices, levels, ordered=bool(type_.ordered)
            )
            for chunk in known.chunks
        ]
    )


def _plain(values: Any) -> Any:
    """Returns a column of pandas whose type Arrow lacks as one that Arrow has."""
    dtype = getattr(values, "dtype", None)
    kind = type(dtype).__name__
    if kind == "SparseDtype":
        return np.asarray(values)
    if kind == "PeriodDtype":
        return getattr(values, "dt", values).to_timestamp()
    if kind == "IntervalDtype":
        # The categories of what is not ordered are sorted.
        values, kind = values.astype("category"), "CategoricalDtype"
        values = getattr(values, "cat", values).as_ordered()
    if kind == "CategoricalDtype":
        categorical = getattr(values, "cat", values)
        categories = categorical.categories
        if type(categories.dtype).__name__ in ("IntervalDtype", "PeriodDtype") or (
            categories.dtype == object
            and not all(isinstance(x, str) for x in categories)
        ):
            return categorical.rename_categories([cell_text(x) for x in categories])
    return values


def _as_texts(name: str, values: Any) -> pa.Array:
    """Returns values of several types as texts, numbers as their digits."""
    texts: list[str | None] = []
    for row, value in enumerate(values, start=1):
        if is_missing(value):
            texts.append(None)
        elif isinstance(value, (str, numbers.Real, decimal.Decimal, np.bool, *_TIMES)):
            texts.append(cell_text(value))
        else:
            raise TableError(
                f"Column {name!r} has a value of type {type(value).__name__} in row "
                f"{row}, but must hold numbers, booleans, dates or texts; convert the "
                "values, or leave the column out."
            )
    return pa.array(texts, pa.string())


def is_missing(value: object) -> bool:
    """Whether a value is None, NaN, or a missing value of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating | decimal.Decimal) and value != value
