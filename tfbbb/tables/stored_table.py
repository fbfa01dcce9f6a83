"""Tables in files, of which memory holds a part at a time."""

import contextlib
import functools
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from tfbbb.base.files import atomic_file, disk_faults_named
from tfbbb.tables.scan import TableScan

# Blocks of predictions are smaller than those of a file.
_ROWS_PER_BATCH = 2**16


class StoredTable:
    """A `ColumnSource` in an Arrow file, which caches the column that was read last."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        with _open_reader(self.path) as blocks:
            self.schema: pa.Schema = blocks.schema
        self._latest: tuple[str, pa.ChunkedArray] | None = None

    @classmethod
    def write(
        cls, path: str | os.PathLike[str], batches: Iterable[pa.RecordBatch]
    ) -> "StoredTable":
        """Writes batches of rows, all or none, and opens the table."""
        writer, options = None, pa.ipc.IpcWriteOptions(compression="lz4")
        with atomic_file(path) as file:
            for batch in map(_without_dictionaries, batches):
                writer = writer or pa.ipc.new_file(file, batch.schema, options=options)
                writer.write_batch(batch)
            if writer is not None:
                writer.close()
        return cls(path)

    @classmethod
    def from_scan(cls, scan: TableScan, directory: Path) -> "StoredTable":
        """Stores the rows of a file, or of a sheet, unless they are stored already."""
        file = scan.path.resolve()
        status = file.stat()
        source = [file, status.st_size, status.st_mtime_ns, scan.format, scan.sheet]
        name = hashlib.sha256(repr([*map(str, source)]).encode()).hexdigest()[:16]
        path = directory / f"table-{name}.arrow"
        if path.exists():
            return cls(path)
        directory.mkdir(parents=True, exist_ok=True)
        with disk_faults_named(directory):
            return cls.write(path, scan.batches())

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in their order."""
        return list(self.schema.names)

    @functools.cached_property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.column(self.column_names[0]))

    def column(self, name: str) -> pa.ChunkedArray:
        """Reads a column."""
        if self._latest is None or self._latest[0] != name:
            # Free the previous column before reading the next.
            self._latest = None
            self._latest = name, self._read(self.column_names.index(name))
        return self._latest[1]

    def tables(self) -> Iterator[pa.Table]:
        """Yields all rows in their order, in tables of bounded size."""
        self._latest = None
        with _open_reader(self.path) as blocks:
            for index in range(blocks.num_record_batches):
                yield pa.Table.from_batches([blocks.get_batch(index)])

    def take(self, rows: np.ndarray) -> pa.Table:
        """Returns the rows at some indices; these rows must fit into memory."""
        order = np.argsort(rows, kind="stable")
        places = rows[order]
        taken, first = [], 0
        for table in self.tables():
            start, end = np.searchsorted(places, [first, first + table.num_rows])
            taken.append(table.take(places[start:end] - first))
            first += table.num_rows
        return pa.concat_tables(taken).take(np.argsort(order))

    def _read(self, place: int) -> pa.ChunkedArray:
        with _open_reader(self.path, [place]) as blocks:
            chunks = [
                blocks.get_batch(index).column(0)
                for index in range(blocks.num_record_batches)
            ]
        return pa.chunked_array(chunks, self.schema.field(place).type)


@contextlib.contextmanager
def _open_reader(
    path: Path, places: list[int] | None = None
) -> Iterator[pa.ipc.RecordBatchFileReader]:
    options = pa.ipc.IpcReadOptions(included_fields=places)
    # The file is not mapped: its mapped pages would count as memory of the process.
    with pa.OSFile(str(path)) as file:
        yield pa.ipc.open_file(file, options=options)


def _without_dictionaries(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Decodes dictionaries: an Arrow file has one for all batches."""
    schema = batch.schema
    for place, field in enumerate(schema):
        if pa.types.is_dictionary(field.type):
            schema = schema.set(place, field.with_type(field.type.value_type))
    return batch if schema is batch.schema else batch.cast(schema)


class SpooledTable:
    """Collects the blocks of a table in a temporary file, mapped or read in order."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory

    def __enter__(self) -> Self:
        self._file = tempfile.NamedTemporaryFile(
            prefix="tfbbb-", suffix=".arrow", dir=self._directory
        )
        self._writer: pa.RecordBatchStreamWriter | None = None
        self._schema: pa.Schema | None = None
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def append(self, block: pa.Table) -> None:
        """Writes a block; all blocks have the columns of the first."""
        if self._writer is None:
            # A stream, because blocks may have dictionaries of their own.
            self._schema = block.schema
            self._writer = pa.ipc.new_stream(self._file.name, block.schema)
        self._writer.write_table(block.cast(self._schema))

    def table(self) -> pa.Table:
        """Returns the rows of all blocks, of which there is at least one."""
        assert self._writer is not None
        self._writer.close()
        return pa.ipc.open_stream(pa.memory_map(self._file.name)).read_all()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows of all blocks, of which there is at least one, in order."""
        assert self._writer is not None
        self._writer.close()
        waiting: list[pa.RecordBatch] = []
        with pa.OSFile(self._file.name) as file:
            for batch in pa.ipc.open_stream(file):
                waiting.append(batch)
                if sum(part.num_rows for part in waiting) >= _ROWS_PER_BATCH:
                    yield pa.concat_batches(waiting)
                    waiting = []
        if waiting:
            yield pa.concat_batches(waiting)
