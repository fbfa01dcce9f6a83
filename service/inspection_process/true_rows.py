"""The rows of a file whose target is known, as feedback."""

from decimal import Decimal

import numpy as np
import orjson
import pyarrow as pa

from service.shared.file_rows import FileTask
from service.shared.json_types import JsonObject
from tfbbb.tables.known_targets import (
    UnusableTarget,
    describe_unusable,
    read_known_targets,
)
from tfbbb.tables.notations import notation_from_dict
from tfbbb.tables.scan import TableScan
from tfbbb.tables.table_error import TableError

_TARGET = "\0target"


class TrueRows:
    """Reads targets, and leaves out rows without one."""

    def __init__(self, scan: TableScan, task: FileTask) -> None:
        assert task.target is not None
        assert task.most_rows is not None
        if scan.num_rows > task.most_rows:
            raise TableError(
                f"{task.path} may have at most {task.most_rows} rows of feedback; "
                f"split it. Received: {scan.num_rows} rows"
            )
        if task.target not in scan.schema.names:
            names = ", ".join(map(repr, scan.schema.names[:20]))
            raise TableError(
                f"{task.path} lacks the column {task.target!r} with what came true. "
                f"Received: {names}"
            )
        self.target = task.target
        self._num_rows = scan.num_rows
        self._classes = task.classes
        self._notation = notation_from_dict(task.target_notation)
        self._seen = self._num_known = 0
        self._unusable: dict[int, UnusableTarget] = {}

    def usable(self, rows: pa.Table, block: pa.Table) -> pa.Table:
        """Returns the rows whose target is known, with the target as last column."""
        found = read_known_targets(block, self.target, self._classes, self._notation)
        for row, target in found.unusable.items():
            self._unusable[self._seen + row] = target
        self._seen += block.num_rows
        known = found.known
        self._num_known += int(known.sum())
        values = found.values[known]
        targets: np.ndarray | list[str] = values
        if self._classes is not None:
            targets = [self._classes[index] for index in values]
        return rows.filter(pa.array(known)).append_column(_TARGET, pa.array(targets))

    def encode(self, rows: pa.Table) -> bytes:
        """Returns rows as the body of a request of feedback."""
        *names, _ = rows.column_names
        body = {
            "inputs": {name: _as_json(rows[name]) for name in names},
            "targets": rows[_TARGET].to_pylist(),
        }
        return orjson.dumps(body, default=_as_json_value)

    def describe(self) -> JsonObject:
        """Returns the number of rows that were left out, and sentences about them."""
        remarks = describe_unusable(
            self.target, self._unusable, self._num_rows, "such rows are left out"
        )
        if not self._num_known:
            raise TableError(
                " ".join([f"No row has a {self.target!r} to compare with.", *remarks])
            )
        return {"left_out": self._num_rows - self._num_known, "remarks": [*remarks]}


def _as_json(column: pa.ChunkedArray) -> list[object]:
    """Returns the values of a column; dates as seconds since 1970."""
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        seconds = column.cast(pa.timestamp("s"), safe=False)
        return list(seconds.cast(pa.int64()).to_pylist())
    return list(column.to_pylist())


def _as_json_value(value: object) -> float | str:
    return float(value) if isinstance(value, Decimal) else str(value)
