"""Cells of text as the plain numbers, booleans, dates or times that all of them are."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.tables.notations.missing_marks import known_texts

# What the schema of a table says whose cells are texts because its file has no types,
# and whose file has decimal commas.
WITHOUT_TYPES = {b"cells": b"texts"}
WITH_DECIMAL_COMMAS = {b"decimal_mark": b","}

_NUMBERS = (pa.int64(), pa.float64())
_DATES = (pa.date32(), pa.timestamp("s"), pa.timestamp("us"))
_MOMENTS = (pa.timestamp("s", "UTC"), pa.timestamp("us", "UTC"))
_TIMES = (pa.time32("s"),)
_BOOLEANS = (pa.bool_(),)
# Each type of a ladder has the values of those before it.
_LADDERS = (_NUMBERS, _DATES, _MOMENTS, _TIMES, _BOOLEANS)
# The types of a column by its first cell.
_TYPES = (
    (re.compile(r"\s*\d{4}-\d\d-\d\d"), (*_DATES, *_MOMENTS)),
    (re.compile(r"\d\d:\d\d(:\d\d)?$"), _TIMES),
    (re.compile(r"\s*[-+]?(\d+|0[xX][\da-fA-F]+)\s*$"), _NUMBERS),
    (re.compile(r"\s*[-+]?([\d.,]|inf)", re.IGNORECASE), (pa.float64(),)),
    (re.compile(r"\s*(true|false)\s*$", re.IGNORECASE), _BOOLEANS),
)
_WHOLE, _DIGIT = r"^ *[+-]?\d+ *$", r"\d"


def has_mark(
    metadata: Mapping[bytes, bytes] | None, mark: Mapping[bytes, bytes]
) -> bool:
    """Whether the metadata of a schema have a mark, such as `WITHOUT_TYPES`."""
    return mark.items() <= (metadata or {}).items()


def plain_values(
    column: pa.ChunkedArray, *, decimal_commas: bool = False
) -> pa.ChunkedArray:
    """Returns texts as values of the narrowest type that fits all, else as they are.

    Whole numbers of which some begin with a zero, as 01569, are codes and stay texts.
    """
    plain = partial(_plain_block, decimal_commas=decimal_commas)
    with ThreadPoolExecutor(pa.cpu_count()) as threads:
        blocks = [*threads.map(plain, column.chunks)]
    type_ = common_type(block.type for block in blocks)
    pairs = zip(blocks, column.chunks, strict=True)
    return pa.chunked_array([of_type(*pair, type_) for pair in pairs], type_)


def common_type(types: Iterable[pa.DataType]) -> pa.DataType:
    """Returns the narrowest type for the values of all types."""
    known = {*types} - {pa.null()}
    if len(known) < 2:
        return known.pop() if known else pa.null()
    for ladder in _LADDERS:
        if known.issubset(ladder):
            return max(known, key=ladder.index)
    return pa.string()


def typed_table(table: pa.Table, text_columns: Collection[str] = ()) -> pa.Table:
    """Returns a table of texts with its plain columns as values; see `plain_values`."""
    metadata = table.schema.metadata
    if not has_mark(metadata, WITHOUT_TYPES):
        return table
    commas = has_mark(metadata, WITH_DECIMAL_COMMAS)
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        column = known_texts(column)
        if name not in text_columns:
            column = plain_values(column, decimal_commas=commas)
        columns.append(column)
    rest = WITH_DECIMAL_COMMAS if commas else None
    return pa.table(columns, names=table.column_names, metadata=rest)


class PlainTypes:
    """The types of a file's columns by all of its cells, read block by block."""

    def __init__(self) -> None:
        self._types: list[set[pa.DataType]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the next rows."""
        self._types = self._types or [set() for _ in batch.schema]
        values = map(values_reader(batch.schema), batch.columns)
        for types, column in zip(self._types, values, strict=True):
            types.add(column.type)

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns rows with columns of the types that fit all rows."""
        read = values_reader(batch.schema)
        columns = [
            of_type(read(column), column, common_type(types))
            for column, types in zip(batch.columns, self._types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def values_reader(schema: pa.Schema) -> Callable[[pa.Array], pa.Array]:
    """Returns what reads a block of a column as values, of a type of its own."""
    if not has_mark(schema.metadata, WITHOUT_TYPES):
        return _as_it_is
    commas = has_mark(schema.metadata, WITH_DECIMAL_COMMAS)
    return lambda texts: _plain_block(known_texts(texts), decimal_commas=commas)


def _as_it_is(values: Any) -> Any:
    return values


def of_type(block: pa.Array, texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Returns the values of a block of texts with a type that fits others too."""
    if block.type == type_:
        return block
    if pa.types.is_string(type_):
        return known_texts(texts)
    return block.cast(type_, safe=not pa.types.is_integer(block.type))


def _plain_block(texts: pa.Array, *, decimal_commas: bool) -> pa.Array:
    """Returns the cells of a block as values of one type, or as they are."""
    first = pc.index(texts.is_valid(), True).as_py()
    if first < 0:
        return pa.nulls(len(texts))
    cell = texts[first].as_py()
    types = next((types for form, types in _TYPES if form.match(cell)), ())
    are_numbers, cells = pa.float64() in types, texts
    if not types:
        return texts
    if types is _BOOLEANS and _any(pc.match_substring_regex(texts, _DIGIT)):
        return texts
    if are_numbers and decimal_commas:
        # Points may separate thousands.
        if _any(pc.match_substring(texts, ".")):
            return texts
        cells = pc.replace_substring(texts, ",", ".")
    values = _cast(cells, types)
    if values is None and not (trimmed := pc.utf8_trim(cells, " \t")).equals(cells):
        values = _cast(trimmed, types)
    if values is None or (are_numbers and _are_codes(texts, values)):
        return texts
    return values


def _cast(texts: pa.Array, types: Iterable[pa.DataType]) -> pa.Array | None:
    """Returns texts as values of the first type that fits all, or None."""
    for type_ in types:
        try:
            if type_ in _TIMES:
                on_a_day = pc.binary_join_element_wise("1970-01-01", texts, " ")
                return on_a_day.cast(pa.timestamp("s")).cast(type_)
            return texts.cast(type_)
        except pa.ArrowInvalid:
            continue
    return None


def _are_codes(texts: pa.Array, numbers: pa.Array) -> bool:
    begin = pc.and_(pc.starts_with(texts, "0"), pc.greater_equal(numbers, 1))
    return _any(begin) and not _any(pc.invert(pc.match_substring_regex(texts, _WHOLE)))


def _any(chosen: pa.Array) -> bool:
    return bool(pc.any(chosen).as_py())
