"""The cells of a column, before a notation says what they stand for."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.tables.column_names import ColumnSource
from tfbbb.tables.notations.missing_marks import known_texts
from tfbbb.tables.notations.notation import Notation, Texts
from tfbbb.tables.plain_values import (
    WITH_DECIMAL_COMMAS,
    WITHOUT_TYPES,
    has_mark,
    plain_values,
)
from tfbbb.tables.table_error import ColumnError
from tfbbb.tables.values import are_numbers, are_texts

Kind = Literal["numeric", "categorical", "date"]
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True)
class Cells:
    """The cells of one column of a table or a block of rows."""

    name: str
    given: pa.ChunkedArray
    is_category: bool = False
    levels: tuple[str, ...] = ()
    decimal_commas: bool = False
    has_no_type: bool = False

    @classmethod
    def read(cls, table: ColumnSource, name: str) -> "Cells":
        """Reads the cells of a column that the table has."""
        values = table.column(name)
        if not pa.types.is_dictionary(values.type):
            metadata = _metadata(table)
            return cls(
                name,
                values,
                decimal_commas=has_mark(metadata, WITH_DECIMAL_COMMAS),
                has_no_type=has_mark(metadata, WITHOUT_TYPES),
            )
        levels: tuple[str, ...] = ()
        if values.type.ordered and values.num_chunks:
            levels = tuple(values.chunk(0).dictionary.to_pylist())
        return cls(name, values.cast(values.type.value_type), True, levels)

    @functools.cached_property
    def values(self) -> pa.ChunkedArray:
        """The values: plain numbers or dates, if all cells without a type are."""
        if not self.has_no_type:
            return self.given
        return plain_values(known_texts(self.given), decimal_commas=self.decimal_commas)

    @property
    def typed(self) -> "Cells":
        """The cells as their values."""
        if not self.has_no_type:
            return self
        return replace(self, given=self.values, has_no_type=False)

    @property
    def as_written(self) -> "Cells":
        """The cells of a file without types as the texts that they are in the file."""
        if not self.has_no_type:
            return self
        return replace(self, given=known_texts(self.given), has_no_type=False)

    def written_for(self, kind: Kind, notation: Notation | None) -> "Cells":
        """Returns the cells in the form that a kind and a notation read."""
        are_texts = kind == "categorical" or (
            notation is not None and notation.needs_text
        )
        return self.as_written if are_texts else self

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the values."""
        return self.values.type

    @functools.cached_property
    def kind(self) -> Kind:
        """The kind of the column by its type alone."""
        types, type_ = pa.types, self.type
        if are_numbers(type_) or types.is_null(type_) or self.is_duration:
            return "numeric"
        if are_texts(type_):
            return "categorical"
        if types.is_date(type_) or types.is_timestamp(type_):
            return "date"
        raise ColumnError(
            f"Column {self.name!r} holds values of type {type_}, which a model cannot "
            "read; convert them to numbers or text, or leave the column out.",
            self.name,
            unusable=True,
        )

    @property
    def is_boolean(self) -> bool:
        """Whether the cells are `true` and `false`."""
        return pa.types.is_boolean(self.type)

    @property
    def is_duration(self) -> bool:
        """Whether the cells are durations or times of day."""
        return pa.types.is_duration(self.type) or pa.types.is_time(self.type)

    @property
    def may_have_fractions(self) -> bool:
        """Whether the cells are numbers of a type other than integers."""
        return pa.types.is_floating(self.type) or pa.types.is_decimal(self.type)

    @functools.cached_property
    def texts(self) -> Texts:
        """The cells of a column of texts."""
        return Texts.of(self.values)

    @functools.cached_property
    def digits(self) -> "Cells":
        """Numbers and booleans as texts: 7 and 7.0 are `"7"`."""
        values = self.values
        if not self.may_have_fractions:
            return Cells(self.name, values.cast(pa.string()))
        values = values.cast(pa.float64(), safe=False)
        whole = pc.and_(
            pc.equal(values, pc.floor(values)), pc.less(pc.abs(values), 2.0**53)
        )
        digits = pc.if_else(whole, values, 0.0).cast(pa.int64()).cast(pa.string())
        texts = pc.if_else(whole, digits, values.cast(pa.string()))
        known = pc.if_else(pc.is_nan(values), pa.scalar(None, pa.string()), texts)
        return Cells(self.name, known)

    @functools.cached_property
    def numbers(self) -> np.ndarray:
        """Numbers and booleans as float64 `[n]`, NaN for missing."""
        return self.values.cast(pa.float64(), safe=False).to_numpy()

    def seconds(self) -> np.ndarray:
        """Returns dates as seconds since 1970, or durations, float64 `[n]` with NaN."""
        if pa.types.is_date32(self.type):
            return 86400.0 * self.values.cast(pa.int32()).cast(pa.float64()).to_numpy()
        if self.is_duration:
            narrow = pa.int32() if pa.types.is_time32(self.type) else pa.int64()
            ticks = self.values.cast(narrow).cast(pa.float64(), safe=False).to_numpy()
            return ticks / _PER_SECOND[self.type.unit]
        unit = "ms" if pa.types.is_date64(self.type) else self.type.unit
        ticks = self.values.cast(pa.int64())
        seconds = ticks.fill_null(0).to_numpy() / _PER_SECOND[unit]
        return np.where(self.values.is_valid().to_numpy(), seconds, np.nan)


def _metadata(table: ColumnSource) -> Mapping[bytes, bytes] | None:
    while isinstance(inner := getattr(table, "table", None), ColumnSource):
        table = inner
    schema = getattr(table, "schema", None)
    return None if schema is None else schema.metadata
