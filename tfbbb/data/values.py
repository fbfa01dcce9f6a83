"""The values of an Arrow column as NumPy arrays of numbers, texts or labels."""

from typing import Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute

from tfbbb.data.column_source import ColumnSource
from tfbbb.data.table_error import ColumnError, TableError

Kind = Literal["numeric", "categorical"]
Batch = TypeVar("Batch", pa.RecordBatch, pa.Table)

_NUMBER = r"^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def column_kind(table: ColumnSource, name: str) -> Kind:
    """Returns the kind of a column, by its Arrow type.

    Raises:
        TableError: The column holds neither numbers, booleans nor text.
    """
    type_ = _value_type(table, name)
    if (
        pa.types.is_boolean(type_)
        or pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or pa.types.is_decimal(type_)
        or pa.types.is_null(type_)
    ):
        return "numeric"
    if (
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
    ):
        return "categorical"
    advice = "convert them to numbers or text"
    if pa.types.is_temporal(type_):
        advice = "convert them to numbers (such as days since a date, or the month)"
    raise ColumnError(
        f"Column {name!r} holds values of type {type_}, which a model cannot read; "
        f"{advice}, or leave the column out.",
        name,
    )


def is_boolean(table: ColumnSource, name: str) -> bool:
    """Returns whether a column holds `true` and `false`."""
    return pa.types.is_boolean(_value_type(table, name))


def read_numbers(table: ColumnSource, name: str) -> np.ndarray:
    """Returns a column as float64 numbers `[n]`, NaN for missing.

    A text column is read as numbers if each of its texts is a number.

    Raises:
        TableError: A text is not a number, or a number is infinite in single
            precision, in which models compute.
    """
    column = table.column(name)
    if column_kind(table, name) == "categorical":
        column = _trim(column)
        texts = ~number_texts(table, name)
        if texts.any():
            row = first_row(texts)
            text = table.column(name)[row - 1].as_py()
            raise TableError(
                f"Column {name!r} has the text {text!r} in row {row}, but must hold "
                "numbers."
            )
    values = column.cast(pa.float64(), safe=False).to_numpy()
    with np.errstate(over="ignore"):
        infinite = np.isinf(values.astype(np.float32))
    if infinite.any():
        row = first_row(infinite)
        raise TableError(
            f"Column {name!r} has the value {values[row - 1]:g} in row {row}, which is "
            "infinite in single precision."
        )
    return values


def read_texts(table: ColumnSource, name: str) -> pa.ChunkedArray:
    """Returns a column as texts, `""` for missing.

    Raises:
        TableError: The column holds numbers.
    """
    column = table.column(name)
    if column_kind(table, name) == "numeric" and column.null_count < len(column):
        raise TableError(
            f"Column {name!r} holds values of type {column.type}, but must hold text; "
            "cast it to text, or read it from a CSV file with "
            f"read_table(path, text_columns=[{name!r}])."
        )
    return column.cast(pa.string()).fill_null("")


def read_labels(table: ColumnSource, name: str) -> tuple[np.ndarray, pa.Array]:
    """Reads a target column as class labels.

    The label of a text is the text, of an integer its digits, of a boolean `true` or
    `false`.

    Returns:
        The index of each row's label, `[n]`, and the distinct labels.

    Raises:
        TableError: A value is missing, or a number with a fraction.
    """
    if _may_have_fractions(table, name):
        values = read_numbers(table, name)
        fractions = ~np.isnan(values) & (values != np.round(values))
        if fractions.any():
            row = first_row(fractions)
            raise TableError(
                f"The target {name!r} has the value {values[row - 1]:g} in row {row}; "
                "classes must be text, booleans or whole numbers."
            )
        missing = np.isnan(values)
        # Adding 0.0 turns -0.0 into 0.0.
        codes, distinct = _encode(pa.chunked_array([pa.array(values + 0.0)]))
        labels = pa.array([_format_integer(value) for value in distinct.to_pylist()])
    else:
        texts = table.column(name).cast(pa.string()).fill_null("")
        missing = pa.compute.equal(texts, "").to_numpy()
        codes, labels = _encode(texts)
    if missing.any():
        raise TableError(
            f"The target {name!r} has no value in row {first_row(missing)}; drop the "
            "rows without a target."
        )
    return codes, labels


def _encode(values: pa.ChunkedArray) -> tuple[np.ndarray, pa.Array]:
    # Arrow computes the codes: Python objects would take ten times the memory.
    distinct = pa.compute.unique(values)
    return pa.compute.index_in(values, value_set=distinct).to_numpy(), distinct


def _format_integer(value: float) -> str:
    return "" if np.isnan(value) else str(int(value))


def number_texts(table: ColumnSource, name: str) -> np.ndarray:
    """Returns a mask `[n]` of the texts of a column that are numbers or missing."""
    matches = pa.compute.match_substring_regex(_trim(table.column(name)), _NUMBER)
    return matches.fill_null(True).to_numpy()


def _trim(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.compute.utf8_trim_whitespace(texts.cast(pa.string()))


def first_row(marked: np.ndarray) -> int:
    """Returns the number, from 1, of the first marked row."""
    return int(np.argmax(marked)) + 1


def _may_have_fractions(table: ColumnSource, name: str) -> bool:
    type_ = _value_type(table, name)
    return pa.types.is_floating(type_) or pa.types.is_decimal(type_)


def _value_type(table: ColumnSource, name: str) -> pa.DataType:
    type_ = table.column(name).type
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def without_views(rows: Batch) -> Batch:
    """Converts columns of string views, as Polars writes them, to strings.

    Arrow does not support `take` of string views yet.

    Example:
    >>> views = pa.table({"a": pa.array(["x", None]).cast(pa.string_view())})
    >>> without_views(views).schema.types
    [DataType(string)]
    """
    schema = rows.schema
    for place, field in enumerate(schema):
        if pa.types.is_string_view(field.type):
            schema = schema.set(place, field.with_type(pa.string()))
    return rows if schema is rows.schema else rows.cast(schema)
