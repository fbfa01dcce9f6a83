"""Rows to predict, in a form that JSON can hold."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfbbb.data.given_table import as_arrow, is_table

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Rows:
    """Rows to predict, which can be sent in blocks.

    Either `columns` or `matrix` is None.

    Args:
        columns: Columns by name.
        matrix: Rows of values in the order of the model's features.
    """

    columns: Mapping[str, Sequence[Any]] | None
    matrix: Sequence[Any] | None

    @classmethod
    def read(cls, rows: Any) -> "Rows":
        """Reads a table, a mapping of columns, a list of mappings, or a matrix."""
        if is_table(rows):
            table = as_arrow(rows)
            names = table.column_names
            return cls({name: _as_json(table[name]) for name in names}, None)
        if isinstance(rows, Mapping):
            return cls(
                {name: _as_list(rows[name], f"Column {name!r}") for name in rows}, None
            )
        rows = _as_list(rows, "`rows`")
        if rows and isinstance(rows[0], Mapping):
            names = {name: None for row in rows for name in row}
            return cls({name: [row.get(name) for row in rows] for name in names}, None)
        return cls(None, rows)

    def __len__(self) -> int:
        if self.columns is None:
            return len(self.matrix or ())
        return max(map(len, self.columns.values()), default=0)

    def slice(self, start: int, stop: int) -> Any:
        """Returns the rows from `start` to `stop`, as the body of a request."""
        if self.columns is None:
            return (self.matrix or ())[start:stop]
        return {name: column[start:stop] for name, column in self.columns.items()}


def _as_json(column: "pa.ChunkedArray") -> list[Any]:
    """Returns the values of a column; dates as seconds since 1970."""
    import pyarrow as pa

    type_ = column.type
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        return column.cast(pa.timestamp("s"), safe=False).cast(pa.int64()).to_pylist()
    return column.to_pylist()


def _as_list(values: Any, name: str) -> Sequence[Any]:
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(
            f"{name} must be a list, an array or a series; pass a single row as a list "
            f"of one mapping, [{{...}}]. Received: {values!r}"
        )
    return values if isinstance(values, list) else list(values)
