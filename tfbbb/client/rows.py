"""Rows to predict, which are sent in blocks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from tfbbb.base.types import ArrayLike, JsonObject, TableLike
from tfbbb.tables.given_table import as_arrow, is_table

if TYPE_CHECKING:
    import pyarrow as pa

ARROW = "application/vnd.apache.arrow.stream"

# Rows of a block in JSON, whose bytes are known only when it is written.
ROWS_OF_JSON = 1000
_BYTES_OF_ARROW = 2**19
_ROWS_OF_ARROW = 8192


@dataclass(frozen=True)
class Rows:
    """Rows to predict, which can be sent in blocks.

    One of `table`, `columns` and `matrix` is not None.
    """

    table: "pa.Table | None"
    columns: Mapping[str, Sequence[object]] | None
    matrix: Sequence[object] | None

    @classmethod
    def read(cls, rows: TableLike | ArrayLike) -> "Rows":
        """Reads a table, a mapping of columns, a list of mappings, or a matrix."""
        if is_table(rows):
            return cls(as_arrow(rows), None, None)
        if isinstance(rows, Mapping):
            named = {name: _as_list(rows[name], f"Column {name!r}") for name in rows}
            return cls(None, named, None)
        rows = _as_list(rows, "`rows`")
        if rows and isinstance(rows[0], Mapping):
            names = {name: None for row in rows for name in row}
            listed = {name: [row.get(name) for row in rows] for name in names}
            return cls(None, listed, None)
        return cls(None, None, rows)

    def __len__(self) -> int:
        if self.table is not None:
            return int(self.table.num_rows)
        if self.columns is None:
            return len(self.matrix or ())
        return max(map(len, self.columns.values()), default=0)

    @property
    def block_size(self) -> int:
        """Rows of a block: of a table about 512 KB."""
        if self.table is None:
            return ROWS_OF_JSON
        bytes_of_a_row = max(1, self.table.nbytes // max(1, len(self)))
        return max(1, min(_ROWS_OF_ARROW, _BYTES_OF_ARROW // bytes_of_a_row))

    def request(
        self,
        start: int,
        stop: int,
        parameters: JsonObject,
        targets: Sequence[object] | None,
    ) -> JsonObject:
        """Returns the request that predicts a block of rows, whose answer is Arrow."""
        if self.table is not None:
            given = None if targets is None else targets[start:stop]
            return _table_request(
                self.table.slice(start, stop - start), parameters, given
            )
        request = self.json_request(
            start, stop, {"parameters": dict(parameters)}, targets
        )
        request["headers"]["Accept"] = ARROW
        return request

    def json_request(
        self,
        start: int,
        stop: int,
        fields: JsonObject,
        targets: Sequence[object] | None,
    ) -> JsonObject:
        """Returns a request whose body is a block of rows in JSON."""
        body = dict(fields)
        if self.table is not None:
            block = self.table.slice(start, stop - start)
            body["inputs"] = {
                name: _as_json(block[name]) for name in block.column_names
            }
        elif self.columns is None:
            body["inputs"] = (self.matrix or ())[start:stop]
        else:
            columns = self.columns.items()
            body["inputs"] = {name: column[start:stop] for name, column in columns}
        if targets is not None:
            body["targets"] = targets[start:stop]
        option = orjson.OPT_SERIALIZE_NUMPY
        content = orjson.dumps(body, default=_convert_to_json_type, option=option)
        return {"content": content, "headers": {"Content-Type": "application/json"}}


def _table_request(
    table: "pa.Table", parameters: JsonObject, targets: Sequence[object] | None
) -> JsonObject:
    import pyarrow as pa

    params = {name: _as_text(value) for name, value in parameters.items()}
    if targets is not None:
        name = "targets"
        while name in table.column_names:
            name += "_given"
        table = table.append_column(name, pa.array(targets))
        params["targets"] = name
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content = sink.getvalue().to_pybytes()
    headers = {"Content-Type": ARROW, "Accept": ARROW}
    return {"content": content, "headers": headers, "params": params}


def _as_json(column: "pa.ChunkedArray") -> list[object]:
    """Returns the values of a column; dates as seconds since 1970."""
    import pyarrow as pa

    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        seconds = column.cast(pa.timestamp("s"), safe=False)
        return seconds.cast(pa.int64()).to_pylist()
    return column.to_pylist()


def _as_text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _convert_to_json_type(value: object) -> float | str:
    """Converts a value without a JSON type, e.g. a decimal number, for `orjson`."""
    return float(value) if isinstance(value, Decimal | Fraction) else str(value)


def _as_list(values: ArrayLike, name: str) -> Sequence[Any]:
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(
            f"{name} must be a list, an array or a series; pass a single row as a list "
            f"of one mapping, [{{...}}]. Received: {values!r}"
        )
    return values if isinstance(values, list) else list(values)
