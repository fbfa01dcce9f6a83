"""A table in memory that remembers the columns it has parsed."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tfbbb.tables.cells import Cells, Kind
from tfbbb.tables.column_source import ColumnSource
from tfbbb.tables.notations import Notation
from tfbbb.tables.parsed_column import ParsedColumn


@dataclass(frozen=True)
class ParsedTable:
    """A `ColumnSource` whose columns are parsed once, for the table and for its rows.

    Attributes:
        table: The table.
        rows: Indices of its rows; None for all.
        parsed: The parsed columns of all rows, by name.

    Example:
    >>> from tfbbb.tables.column import Column
    >>> people = ParsedTable(pa.table({"age": ["36 y", "41 y", "-"]}))
    >>> age = Column.infer(people, "age", None)
    >>> age.values(ParsedTable(people, np.array([2, 0])))
    array([nan, 36.], dtype=float32)
    """

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
    parse: Callable[[Cells, Kind, Notation | None], ParsedColumn] = ParsedColumn.parse,
) -> ParsedColumn:
    """Parses a column of a table, unless the table remembers it."""
    if not isinstance(table, ParsedTable):
        return parse(cells or Cells.read(table, name), kind, notation)
    if table.rows is not None:
        whole = parse_column(table.table, name, kind, notation, parse=parse)
        return whole.take(table.rows)
    known = table.parsed.get(name)
    if known is None or (known.kind, known.notation) != (kind, notation):
        known = parse(cells or Cells.read(table, name), kind, notation)
        table.parsed[name] = known
    return known
