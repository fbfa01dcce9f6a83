"""Writes the rows of a file with their predictions into a file of the same format."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from service.sandbox.inspect import format_cell
from service.shared.sandbox import PredictedRows
from tfbbb.base.types import JsonList
from tfbbb.tables.format import Format
from tfbbb.tables.plain_values import PlainTypes
from tfbbb.tables.scan import TableScan
from tfbbb.tables.stored_table import SpooledTable
from tfbbb.tables.writing import with_sensible_digits, write_rows

_SHOWN = 20


class PredictedFile:
    """The rows of a file with their predictions, which wait in another file."""

    def __init__(self, scan: TableScan, output: Path, written: Format) -> None:
        self._scan, self._output, self._written = scan, output, written
        self._has_warnings = False
        self._doubt, self._types = _Doubt(), PlainTypes()
        # A CSV file has the texts as they are.
        self._keeps_texts = scan.dialect is not None and not scan.dialect.sheet

    def __enter__(self) -> Self:
        self._both = SpooledTable(self._output.parent).__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._both.__exit__(*error)

    def add(self, rows: pa.Table, answers: pa.Table) -> None:
        """Adds the next rows with their predictions."""
        self._has_warnings |= answers["warnings"].null_count < len(answers)
        self._doubt.add(answers)
        for batch in [] if self._keeps_texts else rows.to_batches():
            self._types.add(batch)
        if self._written not in ("parquet", "arrow"):
            answers = with_sensible_digits(answers)
        self._schema, self._predicted = rows.schema, answers.column_names
        names = [*rows.column_names, *self._predicted]
        self._both.append(pa.table([*rows.columns, *answers.columns], names=names))

    def write(self) -> PredictedRows:
        """Writes the file; returns some of its rows."""
        # Most files have no row with a warning.
        left_out = () if self._has_warnings else ("warnings",)
        predicted = [name for name in self._predicted if name not in left_out]
        names = _without_clash(self._schema.names, predicted)
        shown = _ShownRows(self._doubt.rows)
        dialect = self._scan.dialect

        def named() -> Iterator[pa.RecordBatch]:
            at = 0
            for batch in self._both.batches():
                given = batch.select(range(len(names)))
                if not self._keeps_texts:
                    metadata = self._schema.metadata
                    given = self._types.convert(given.replace_schema_metadata(metadata))
                answers = dict(
                    zip(self._predicted, batch.columns[len(names) :], strict=True)
                )
                columns = [*given.columns, *(answers[name] for name in predicted)]
                both = pa.RecordBatch.from_arrays(columns, [*names, *predicted])
                shown.add(both, at)
                at += batch.num_rows
                yield both

        batches = named()
        first = next(batches)
        with self._output.open("wb") as file:
            write_rows(
                pa.RecordBatchReader.from_batches(
                    first.schema, itertools.chain([first], batches)
                ),
                file,
                self._written,
                dialect if self._keeps_texts else None,
            )
        remarks = [] if dialect is None or dialect.is_plain else [dialect.describe()]
        return PredictedRows(
            given=names,
            predicted=predicted,
            first=shown.first,
            doubtful=shown.doubtful(),
            doubtful_by=self._doubt.by,
            remarks=remarks,
        )


class _Doubt:
    """Finds the most doubtful rows, block by block."""

    def __init__(self) -> None:
        self.by = ""
        self.rows = np.zeros(0, np.int64)
        self._doubt = np.zeros(0)
        self._num_rows = 0

    def add(self, answers: pa.Table) -> None:
        """Adds the next rows."""
        names = answers.column_names
        if "familiarity" in names:
            self.by, doubt = "the least familiar", -_floats(answers["familiarity"])
        elif "entropy" in names:
            self.by, doubt = "the most open", _floats(answers["entropy"])
        else:
            name = next(name for name in names if name.startswith("std"))
            self.by, doubt = "the widest", _floats(answers[name])
        rows = np.arange(self._num_rows, self._num_rows + len(doubt))
        self._num_rows += len(doubt)
        self.rows = np.concatenate([self.rows, rows])
        self._doubt = np.concatenate([self._doubt, doubt])
        most = np.argsort(-self._doubt, kind="stable")[:_SHOWN]
        self.rows, self._doubt = self.rows[most], self._doubt[most]


class _ShownRows:
    """Collects the rows that people see while all of them are written."""

    def __init__(self, order: np.ndarray) -> None:
        self._order = order
        self._wanted = set(order.tolist())
        self._found: dict[int, JsonList] = {}
        self.first: list[JsonList] = []

    def add(self, batch: pa.RecordBatch, start: int) -> None:
        for row in range(min(batch.num_rows, max(0, _SHOWN - start))):
            self.first.append(_cells(batch, row, start))
        stop = start + batch.num_rows
        for index in (row for row in self._wanted if start <= row < stop):
            self._found[index] = _cells(batch, index - start, start)

    def doubtful(self) -> list[JsonList]:
        return [self._found[index] for index in self._order.tolist()]


def _cells(batch: pa.RecordBatch, row: int, start: int) -> JsonList:
    cells = (format_cell(column[row].as_py()) for column in batch.columns)
    return [start + row + 1, *cells]


def _without_clash(names: list[str], predicted: list[str]) -> list[str]:
    """Returns the names; one that a prediction has gets `_given` at its end."""
    free: list[str] = []
    for name in names:
        new = name
        while new in predicted or new in free or (new != name and new in names):
            new += "_given"
        free.append(new)
    return free


def _floats(column: pa.ChunkedArray) -> np.ndarray:
    values: np.ndarray = column.to_numpy().astype(np.float64)
    return values
