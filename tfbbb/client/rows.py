from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfbbb.data.given_table import as_arrow, is_table


@dataclass(frozen=True)
class Rows:
    """Rows to predict, in a form that can be sent piece by piece.

    Args:
        columns: Columns by name, or
        matrix: rows of values in the order of the model's features.
    """

    columns: Mapping[str, Sequence[Any]] | None
    matrix: Sequence[Any] | None

    @classmethod
    def of(cls, rows: Any) -> "Rows":
        """Reads a table, a mapping of columns, a list of mappings, or a matrix."""
        if is_table(rows):
            table = as_arrow(rows)
            names = table.column_names
            return cls({name: table[name].to_pylist() for name in names}, None)
        if isinstance(rows, Mapping):
            return cls(
                {name: _listed(rows[name], f"Column {name!r}") for name in rows}, None
            )
        rows = _listed(rows, "What is to be predicted")
        if rows and isinstance(rows[0], Mapping):
            names = {name: None for row in rows for name in row}
            return cls({name: [row.get(name) for row in rows] for name in names}, None)
        return cls(None, rows)

    def __len__(self) -> int:
        if self.columns is None:
            return len(self.matrix or ())
        return max(map(len, self.columns.values()), default=0)

    def between(self, start: int, stop: int) -> Any:
        """Some of the rows, as the body of a request holds them."""
        if self.columns is None:
            return (self.matrix or ())[start:stop]
        return {name: column[start:stop] for name, column in self.columns.items()}


def _listed(values: Any, what: str) -> Sequence[Any]:
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(
            f"{what} must be a list, an array or a series; a single row is a list of "
            f"one mapping, [{{...}}]. Received: {values!r}"
        )
    return values if isinstance(values, list) else list(values)
