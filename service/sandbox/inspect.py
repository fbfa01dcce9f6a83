"""Finds columns, statistics and problems of a table, or some of its rows."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from service.sandbox.column_statistics import ColumnStatistics
from service.sandbox.limits import apply_limits
from service.shared.sandbox import Inspection, Limits, Preview, PreviewTask, Task
from tfbbb.base.task import MIN_ROWS
from tfbbb.base.types import JsonObject
from tfbbb.tables import TableError
from tfbbb.tables.plain_values import typed_table, values_reader
from tfbbb.tables.scan import TableScan
from tfbbb.tables.schema import infer_features

_LONGEST_NAME = 256
_LONGEST_CELL = 1000
# The first rows, which show what a job takes each column for.
_MOST_ROWS, _FEWEST_ROWS = 20_000, 500
_MOST_CELLS = 1_000_000


def inspect(task: Task) -> Inspection:
    """Describes all columns of a table."""
    apply_limits(task.limits)
    scan = TableScan(task.path, format=task.format)
    # Each column takes memory before its first value is read.
    _check_at_most("columns", len(scan.header()), task.limits.columns)
    rows = _LimitedRows(task.limits)
    for batch in scan.batches():
        rows.add(batch)
    kinds = rows.first.infer_kinds()
    return Inspection(
        num_rows=scan.num_rows,
        columns=[column.figures() | kinds[column.name] for column in rows.columns],
        problems=list(_find_problems(scan)),
    )


def preview(task: PreviewTask) -> Preview:
    """Reads some rows of a table."""
    apply_limits(task.limits)
    scan = TableScan(task.path, format=task.format)
    head = scan.head(task.rows).select(task.columns)
    head = typed_table(head, task.text_columns)
    columns = [map(format_cell, column.to_pylist()) for column in head.columns]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return Preview(columns=head.column_names, rows=rows)


def format_cell(value: object) -> Any:
    """Returns a cell as a value of JSON; a long text is shortened."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)[:_LONGEST_CELL]


class FirstRows:
    """Keeps the first rows of a table, at most a million cells or 500 rows."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._num_rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Keeps the rows of a batch that are still needed."""
        most = _MOST_CELLS // max(batch.num_columns, 1)
        left = min(max(most, _FEWEST_ROWS), _MOST_ROWS) - self._num_rows
        if left <= 0:
            return
        if batch.num_rows > left:
            # A copy: a slice would hold the memory of the whole batch.
            batch = batch.take(pa.array(range(left)))
        self._batches.append(batch)
        self._num_rows += batch.num_rows

    def infer_kinds(self) -> dict[str, JsonObject]:
        """Returns what a job takes each column for, as `tfbbb inspect` does."""
        table = pa.Table.from_batches(self._batches)
        features, left_out = infer_features(
            table, table.column_names, {}, refuses=False
        )
        found: dict[str, JsonObject] = {
            x.name: {"role": "feature", "kind": x.meaning, "remarks": [*x.remarks]}
            for x in features
        }
        for name, reason in left_out:
            found[name] = {"role": "left out", "kind": None, "remarks": [reason]}
        return found


class _LimitedRows:
    """The statistics of the rows of a table, the first of them, and its limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._num_rows = self._num_bytes = 0
        self.first = FirstRows()
        self.columns: list[ColumnStatistics] = []

    def add(self, batch: pa.RecordBatch) -> None:
        self._num_rows += batch.num_rows
        self._num_bytes += batch.nbytes
        _check_at_most(
            "rows (TFBBB_MAX_UPLOAD_ROWS)", self._num_rows, self._limits.rows
        )
        most_bytes = self._limits.decompressed_bytes
        _check_at_most("decompressed bytes", self._num_bytes, most_bytes)
        # JSON lines may have further keys after their beginning.
        _check_at_most("columns", batch.num_columns, self._limits.columns)
        _check_lengths(batch.schema.names)
        self.first.add(batch)
        if not self.columns:
            read = values_reader(batch.schema)
            self.columns = [ColumnStatistics(x, read) for x in batch.schema.names]
        for column, cells in zip(self.columns, batch.columns, strict=True):
            column.add(cells)


def _check_at_most(what: str, received: int, most: int) -> None:
    if received > most:
        raise TableError(
            f"The table may have at most {most} {what}. Received: {received} or more"
        )


def _check_lengths(names: Sequence[str]) -> None:
    for number, name in enumerate(names, start=1):
        if len(name) > _LONGEST_NAME:
            raise TableError(
                f"The name of column {number} is too long: it may have at most "
                f"{_LONGEST_NAME} characters. Received: {len(name)}"
            )


def _find_problems(scan: TableScan) -> Iterator[str]:
    """Yields what the table needs before training, and how it was read."""
    if scan.dialect is not None and not scan.dialect.is_plain:
        yield f"The table is read as follows. {scan.dialect.describe()}"
    if scan.num_rows < MIN_ROWS:
        yield f"The table has {scan.num_rows} rows; at least {MIN_ROWS} are needed."
