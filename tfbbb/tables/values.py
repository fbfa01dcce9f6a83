"""The values of an Arrow column as NumPy arrays of numbers, texts or labels."""

from typing import Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute

from tfbbb.tables.column_source import ColumnSource
from tfbbb.tables.notations.date import DateNotation
from tfbbb.tables.notations.notation import Notation, Texts
from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.notations.ordered import OrderedNotation
from tfbbb.tables.notations.text import TextNotation
from tfbbb.tables.table_error import ColumnError, TableError

Kind = Literal["numeric", "categorical", "date"]
Batch = TypeVar("Batch", pa.RecordBatch, pa.Table)

# In a column of dates, which are integers; as NumPy's NaT.
MISSING_DATE = int(np.iinfo(np.int64).min)
_PLURALS = {
    "number": "numbers",
    "boolean": "booleans such as yes and no",
    "date": "dates",
    "duration": "durations",
    "ordered": "the texts",
    "text": "texts",
}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def column_kind(table: ColumnSource, name: str) -> Kind:
    """Returns the kind of a column, by its Arrow type.

    Raises:
        TableError: The column holds neither numbers, booleans, dates nor text.
    """
    type_ = _value_type(table, name)
    types = pa.types
    if types.is_date(type_) or types.is_timestamp(type_):
        return "date"
    if (
        types.is_boolean(type_)
        or types.is_integer(type_)
        or types.is_floating(type_)
        or types.is_decimal(type_)
        or types.is_null(type_)
        or types.is_duration(type_)
        or types.is_time(type_)
    ):
        return "numeric"
    if (
        types.is_string(type_)
        or types.is_large_string(type_)
        or types.is_string_view(type_)
    ):
        return "categorical"
    raise ColumnError(
        f"Column {name!r} holds values of type {type_}, which a model cannot read; "
        "convert them to numbers or text, or leave the column out.",
        name,
        unusable=True,
    )


def is_boolean(table: ColumnSource, name: str) -> bool:
    """Returns whether a column holds `true` and `false`."""
    return pa.types.is_boolean(_value_type(table, name))


def is_duration(table: ColumnSource, name: str) -> bool:
    """Returns whether a column holds durations or times of day."""
    type_ = _value_type(table, name)
    return pa.types.is_duration(type_) or pa.types.is_time(type_)


def read_numbers(
    table: ColumnSource, name: str, notation: Notation | None = None
) -> np.ndarray:
    """Returns a column as float64 numbers `[n]`, NaN for missing.

    Durations and times of day become seconds, dates seconds since 1970.

    Args:
        table: Table with a column of this name.
        name: Name of the column.
        notation: How the texts of a text column are read; plain numbers by default.

    Raises:
        TableError: A text is not in the notation, or a number is infinite in single
            precision, in which models compute.
    """
    column, kind = table.column(name), column_kind(table, name)
    if isinstance(notation, OrderedNotation) and kind == "numeric":
        column, kind = _digits(column), "categorical"
    if kind == "categorical":
        return _parse_texts(name, column, notation or NumberNotation())
    if kind == "date":
        if not isinstance(notation, DateNotation):
            raise TableError(
                f"Column {name!r} holds values of type {column.type}, but must hold "
                "numbers."
            )
        return _seconds(column)
    if is_duration(table, name):
        return _elapsed_seconds(column)
    values = column.cast(pa.float64(), safe=False).to_numpy()
    if isinstance(notation, DateNotation) and notation.epoch == "milliseconds":
        return np.floor(values / 1000.0)
    with np.errstate(over="ignore"):
        infinite = np.isinf(values.astype(np.float32))
    if infinite.any():
        row = first_row(infinite)
        raise TableError(
            f"Column {name!r} has the value {values[row - 1]:g} in row {row}, which is "
            "infinite in single precision."
        )
    return values


def read_dates(
    table: ColumnSource, name: str, notation: Notation | None = None
) -> np.ndarray:
    """Returns a column as int64 seconds `[n]` since 1970, `MISSING_DATE` for missing.

    Raises:
        TableError: A text is not a date in the notation.
    """
    return as_dates(read_numbers(table, name, notation or DateNotation()))


def as_dates(seconds: np.ndarray) -> np.ndarray:
    """Converts seconds, NaN for missing, to int64, `MISSING_DATE` for missing."""
    missing = np.isnan(seconds)
    whole = np.floor(np.where(missing, 0.0, seconds)).astype(np.int64)
    return np.where(missing, MISSING_DATE, whole)


def read_texts(
    table: ColumnSource, name: str, notation: Notation | None = None
) -> pa.ChunkedArray:
    """Returns a column as texts, `""` for missing; booleans as `true` and `false`.

    Args:
        table: Table with a column of this name.
        name: Name of the column.
        notation: What marks a missing value, and whether whole numbers are texts;
            by default neither.

    Raises:
        TableError: The column holds numbers.
    """
    column = table.column(name)
    text = notation if isinstance(notation, TextNotation) else TextNotation()
    if column_kind(table, name) != "categorical" and column.null_count < len(column):
        if not (text.numbers or is_boolean(table, name)):
            raise TableError(
                f"Column {name!r} holds values of type {column.type}, but must hold "
                "text; cast it to text, or read it from a CSV file with "
                f"read_table(path, text_columns=[{name!r}])."
            )
        column = _digits(column)
    texts = column.cast(pa.string()).fill_null("")
    if text.marks:
        missing = pa.array(Texts.of(texts).missing(in_text=True, dash=text.dash))
        texts = pa.chunked_array([pa.compute.if_else(missing, "", _one_chunk(texts))])
    return texts


def _digits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns numbers as texts: 7 and 7.0 are `"7"`."""
    compute = pa.compute
    if not (pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)):
        return column.cast(pa.string())
    column = column.cast(pa.float64(), safe=False)
    whole = compute.and_(
        compute.equal(column, compute.floor(column)),
        compute.less(compute.abs(column), 2.0**53),
    )
    digits = compute.if_else(whole, column, 0.0).cast(pa.int64()).cast(pa.string())
    texts = compute.if_else(whole, digits, column.cast(pa.string()))
    missing = compute.is_nan(column)
    return compute.if_else(missing, pa.scalar(None, pa.string()), texts)


def _one_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks()
    return column


def _parse_texts(name: str, column: pa.ChunkedArray, notation: Notation) -> np.ndarray:
    """Returns the numbers of texts.

    Raises:
        TableError: A text is unreadable, and the notation is not lenient.
    """
    numbers, unreadable = Texts.of(column).parse(notation)
    with np.errstate(over="ignore"):
        unreadable |= np.isinf(numbers.astype(np.float32))
    if unreadable.any() and not notation.lenient:
        row = first_row(unreadable)
        described = notation.describe()
        raise TableError(
            f"Column {name!r} has the text {column[row - 1].as_py()!r} in row {row}, "
            f"but must hold {_PLURALS[notation.kind]}"
            f"{f' ({described})' if described else ''}."
        )
    return np.where(unreadable, np.nan, numbers)


def _seconds(column: pa.ChunkedArray) -> np.ndarray:
    """Returns dates as float64 seconds since 1970, NaN for missing."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_date32(column.type):
        days = column.cast(pa.int32()).cast(pa.float64()).to_numpy()
        return 86400.0 * days
    unit = "ms" if pa.types.is_date64(column.type) else column.type.unit
    ticks = _one_chunk(column.cast(pa.int64()))
    whole = pa.compute.fill_null(ticks, 0).to_numpy(zero_copy_only=False)
    seconds = np.floor_divide(whole, _PER_SECOND[unit]).astype(np.float64)
    return np.where(ticks.is_valid().to_numpy(zero_copy_only=False), seconds, np.nan)


def _elapsed_seconds(column: pa.ChunkedArray) -> np.ndarray:
    """Returns durations or times of day as float64 seconds, NaN for missing."""
    unit = column.type.unit
    narrow = pa.int32() if pa.types.is_time32(column.type) else pa.int64()
    ticks = column.cast(narrow).cast(pa.float64(), safe=False).to_numpy()
    return ticks / _PER_SECOND[unit]


def missing_values(
    table: ColumnSource, name: str, notation: Notation | None = None
) -> np.ndarray:
    """Returns which values `[n]` of a column are missing."""
    kind = column_kind(table, name)
    if kind == "categorical" and not isinstance(notation, TextNotation | None):
        return np.isnan(read_numbers(table, name, notation))
    if kind == "categorical":
        texts = read_texts(table, name, notation)
        return pa.compute.equal(texts, "").to_numpy()
    column = table.column(name)
    if pa.types.is_floating(_value_type(table, name)):
        return np.isnan(column.cast(pa.float64()).to_numpy())
    return column.is_null().to_numpy()


def read_labels(
    table: ColumnSource, name: str, notation: Notation | None = None
) -> tuple[np.ndarray, pa.Array]:
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
        if column_kind(table, name) == "categorical":
            texts = read_texts(table, name, notation)
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
