"""A table in memory that remembers the columns it has parsed."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from tfbbb.tables.cells import Cells, Kind
from tfbbb.tables.column_source import ColumnSource
from tfbbb.tables.notations import Notation
from tfbbb.tables.parsed_column import ParsedColumn

Parse: TypeAlias = Callable[[Cells, Kind, Notation | None], ParsedColumn]


class ParsedTable:
    """A `ColumnSource` whose columns are parsed once, for the table and for its rows.

    Args:
        table: The table; its parsed columns stay in memory.
        rows: Indices of the rows; all by default.

    Example:
    >>> people = ParsedTable(pa.table({"age": ["36 y", "41 y", "-"]}))
    >>> from tfbbb.tables.column import Column
    >>> age = Column.infer(people, "age", None)
    >>> age.values(people.take(np.array([2, 0])))
    array([nan, 36.], dtype=float32)
    """

    def __init__(self, table: ColumnSource, rows: np.ndarray | None = None):
        self._table = table
        self._rows = rows
        self._parsed: dict[str, ParsedColumn] = {}

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in their order."""
        return self._table.column_names

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self._table.num_rows if self._rows is None else len(self._rows)

    def column(self, name: str) -> pa.ChunkedArray:
        """Returns the values of a column as Arrow holds them."""
        values = self._table.column(name)
        return values if self._rows is None else values.take(pa.array(self._rows))

    def take(self, rows: np.ndarray) -> "ParsedTable":
        """Returns the rows at some indices, by which no column is parsed again."""
        return ParsedTable(self, rows)

    def parse(
        self, cells: Cells | str, kind: Kind, notation: Notation | None, parse: Parse
    ) -> ParsedColumn:
        """Returns a parsed column, see `parse_column`."""
        name = cells if isinstance(cells, str) else cells.name
        if self._rows is not None:
            return parse_column(self._table, name, kind, notation, parse).take(
                self._rows
            )
        known = self._parsed.get(name)
        if known is None or (known.kind, known.notation) != (kind, notation):
            known = _parse(self, cells, kind, notation, parse)
            self._parsed[name] = known
        return known


def parse_column(
    table: ColumnSource,
    cells: Cells | str,
    kind: Kind,
    notation: Notation | None,
    parse: Parse = ParsedColumn.parse,
) -> ParsedColumn:
    """Parses a column of a table, unless the table remembers it.

    Args:
        table: The table.
        cells: The cells of the column, or its name if they have not been read.
        kind: What the values are.
        notation: How the cells are written; None for plain numbers or texts.
        parse: Reads the cells.

    Raises:
        TableError: A cell cannot be read so.
    """
    if isinstance(table, ParsedTable):
        return table.parse(cells, kind, notation, parse)
    return _parse(table, cells, kind, notation, parse)


def _parse(
    table: ColumnSource,
    cells: Cells | str,
    kind: Kind,
    notation: Notation | None,
    parse: Parse,
) -> ParsedColumn:
    read = Cells.read(table, cells) if isinstance(cells, str) else cells
    return parse(read, kind, notation)
