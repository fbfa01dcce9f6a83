"""Columns whose cells have been read in a notation, once for all who ask."""

import functools
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.tables.cells import Cells, Kind
from tfbbb.tables.column_names import ColumnSource
from tfbbb.tables.notations.date import DateNotation
from tfbbb.tables.notations.notation import Notation, Texts
from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.notations.words import OrderedNotation, TextNotation
from tfbbb.tables.table_error import TableError
from tfbbb.tables.values import MISSING_DATE, first_row

# `pa.array` would import pandas, where it is installed: 30 MB.
_NO_TEXTS = pa.nulls(0, pa.large_string())
_NAMES = {
    "number": "a number",
    "boolean": "a boolean",
    "date": "a date",
    "duration": "a duration",
    "ordered": "one of its ordered texts",
}


@dataclass(frozen=True)
class ParsedColumn:
    """The values of one column of a table or a block of rows.

    Numbers are float64 `[n]` with NaN for missing, durations in seconds; dates int64
    seconds since 1970; categories the places of the texts in `texts`, in which `""` is
    a missing value. `unreadable` are missing because the notation does not read them.
    """

    name: str
    kind: Kind
    notation: Notation | None
    values: np.ndarray
    missing: np.ndarray
    texts: pa.Array = field(default_factory=lambda: _NO_TEXTS)
    unreadable: np.ndarray | None = None

    @classmethod
    def parse(
        cls, cells: Cells, kind: Kind, notation: Notation | None = None
    ) -> "ParsedColumn":
        """Reads the cells of a column."""
        if kind == "categorical":
            places, texts, missing = _read_texts(cells.as_written, notation)
            return cls(cells.name, kind, notation, places, missing, texts)
        assumed = DateNotation() if kind == "date" else None
        values, unreadable = _read_numbers(cells, notation or assumed)
        missing = np.isnan(values)
        if kind == "date":
            whole = np.floor(np.where(missing, 0.0, values)).astype(np.int64)
            values = np.where(missing, MISSING_DATE, whole)
        return cls(cells.name, kind, notation, values, missing, unreadable=unreadable)

    def take(self, rows: np.ndarray) -> "ParsedColumn":
        """Returns the values of some rows; `texts` may then have more than they."""
        unreadable = None if self.unreadable is None else self.unreadable[rows]
        return replace(
            self,
            values=self.values[rows],
            missing=self.missing[rows],
            unreadable=unreadable,
        )

    def inputs(self, dtype: str) -> np.ndarray:
        """Returns the values `[n]` as inputs of a model."""
        if self.kind == "categorical":
            return self.texts.to_numpy(zero_copy_only=False)[self.values]
        return self.values.astype(dtype)

    @functools.cached_property
    def numbers(self) -> np.ndarray:
        """The values `[n]` as numbers: of dates float64 with NaN for missing."""
        if self.kind == "date":
            return np.where(self.missing, np.nan, self.values)
        return self.values


def _read_numbers(
    cells: Cells, notation: Notation | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Returns numbers, dates or durations as float64 `[n]`, NaN for missing."""
    if isinstance(notation, OrderedNotation) and cells.kind == "numeric":
        cells = cells.digits
    if cells.kind == "categorical":
        numbers, unreadable = cells.texts.parse(notation or NumberNotation())
        return _without(numbers, unreadable | _are_infinite(numbers))
    if cells.kind == "date":
        if not isinstance(notation, DateNotation):
            raise TableError(
                f"Column {cells.name!r} holds values of type {cells.type}, but must "
                "hold numbers."
            )
        return cells.seconds(), None
    if cells.is_duration:
        return cells.seconds(), None
    values = cells.numbers
    if isinstance(notation, NumberNotation):
        values = notation.without_missing_values(values)
    if isinstance(notation, DateNotation):
        seconds = notation.seconds(values)
        return _without(seconds, np.isnan(seconds) & ~np.isnan(values))
    return _without(values, _are_infinite(values))


def _without(
    numbers: np.ndarray, unreadable: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    if not unreadable.any():
        return numbers, None
    return np.where(unreadable, np.nan, numbers), unreadable


def describe_fault(value: object, kind: str) -> str:
    """Says why a cell is unreadable in a column of numbers, dates and so on."""
    if kind == "number" and not isinstance(value, str):
        return "is infinite in single precision"
    return f"is not {_NAMES[kind]}"


def first_fault(cells: Cells, parsed: ParsedColumn) -> str | None:
    """Describes the first unreadable cell, if there is one."""
    if parsed.unreadable is None:
        return None
    row, notation = first_row(parsed.unreadable), parsed.notation or NumberNotation()
    value = cells.values[row - 1].as_py()
    fault, described = describe_fault(value, notation.kind), notation.describe()
    within = f" ({described})" if described else ""
    return f"has {value!r} in row {row}, which {fault}{within}"


def _are_infinite(numbers: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.isinf(numbers.astype(np.float32))


def _read_texts(
    cells: Cells, notation: Notation | None
) -> tuple[np.ndarray, pa.Array, np.ndarray]:
    """Returns the place of each row's text, the distinct texts, and what is missing."""
    text = notation if isinstance(notation, TextNotation) else TextNotation()
    if cells.kind != "categorical" and cells.values.null_count < len(cells.values):
        if not (text.numbers or cells.is_boolean):
            raise TableError(
                f"Column {cells.name!r} holds values of type {cells.type}, but must "
                "hold text; cast it to text."
            )
        cells = cells.digits
    return distinct_texts(cells.texts, text)


def fold_texts(texts: pa.Array) -> pa.Array:
    """Returns texts in small letters, without spaces around them."""
    return pc.utf8_lower(pc.utf8_trim_whitespace(texts))


def distinct_texts(
    texts: Texts, notation: TextNotation
) -> tuple[np.ndarray, pa.Array, np.ndarray]:
    """Returns the place of each row's text, the distinct texts, and what is missing."""
    cells = texts.cells.fill_null("") if texts.cells.null_count else texts.cells
    if notation.fold:
        cells = fold_texts(cells)
    if notation.marks:
        missing = texts.missing(in_text=True, dash=notation.dash)
    else:
        missing = pc.equal(cells, "").to_numpy(zero_copy_only=False)
    if missing.any():
        cells = pc.if_else(pa.array(missing), "", cells)
    encoded = cells.dictionary_encode()
    places = texts.spread(encoded.indices.to_numpy())
    return places, encoded.dictionary, texts.spread(missing)


@dataclass(frozen=True)
class ParsedTable:
    """A `ColumnSource` whose columns are parsed once, for it and for its rows."""

    table: ColumnSource
    rows: np.ndarray | None = None
    parsed: dict[str, ParsedColumn] = field(default_factory=dict)

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in their order."""
        return self.table.column_names

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self.table.num_rows if self.rows is None else len(self.rows)

    def column(self, name: str) -> pa.ChunkedArray:
        """Returns the values of a column as Arrow holds them."""
        values = self.table.column(name)
        return values if self.rows is None else values.take(pa.array(self.rows))


def parse_column(
    table: ColumnSource,
    name: str,
    kind: Kind,
    notation: Notation | None,
    *,
    cells: Cells | None = None,
) -> ParsedColumn:
    """Parses a column of a table, unless the table remembers it."""
    if isinstance(table, ParsedTable) and table.rows is not None:
        return parse_column(table.table, name, kind, notation).take(table.rows)
    known = table.parsed.get(name) if isinstance(table, ParsedTable) else None
    if known is None or (known.kind, known.notation) != (kind, notation):
        known = ParsedColumn.parse(cells or Cells.read(table, name), kind, notation)
        if isinstance(table, ParsedTable):
            table.parsed[name] = known
    return known
