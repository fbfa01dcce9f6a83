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

from tfbbb.base.files import disk_faults_named
from tfbbb.tables.scan import TableScan

# Size of the blocks in which a table is written, and read by rows.
_BYTES_PER_BLOCK = 2**25
_MAX_ROWS_PER_BLOCK = 2**17
# Blocks of predictions are smaller than those of a file.
_ROWS_PER_BATCH = 2**16


class StoredTable:
    """A `ColumnSource` in an Arrow file, which caches the column that was read last."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        with _open_reader(self.path) as blocks:
            self._schema = blocks.schema
        self._latest: tuple[str, pa.ChunkedArray] | None = None

    @classmethod
    def write(
        cls, path: str | os.PathLike[str], batches: Iterable[pa.RecordBatch]
    ) -> "StoredTable":
        """Writes batches of rows, all or none, and opens the table."""
        with _Writer(Path(path)) as writer:
            for batch in batches:
                writer.add(batch)
            return writer.finish()

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
        with disk_faults_named(directory), contextlib.ExitStack() as writers:

            def new_writer() -> _Writer:
                # Rows that were misread: their writer must not flush into the new file.
                writers.close()
                return writers.enter_context(_Writer(path))

            return scan.collect(new_writer, _Writer.add).finish()

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._schema

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in their order."""
        return self._schema.names

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
        return pa.chunked_array(chunks, self._schema.field(place).type)


@contextlib.contextmanager
def _open_reader(
    path: Path, places: list[int] | None = None
) -> Iterator[pa.ipc.RecordBatchFileReader]:
    options = pa.ipc.IpcReadOptions(included_fields=places)
    # The file is not mapped: its mapped pages would count as memory of the process.
    with pa.OSFile(str(path)) as file:
        yield pa.ipc.open_file(file, options=options)


class _Writer:
    """Joins batches into blocks of about the same size and writes the blocks."""

    def __init__(self, path: Path):
        self._path = path
        self._unfinished = path.with_name(f"unfinished-{path.name}")
        self._file = self._unfinished.open("wb")
        self._blocks: pa.ipc.RecordBatchFileWriter | None = None
        self._waiting: list[pa.RecordBatch] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._unfinished.unlink(missing_ok=True)
        self._file.close()

    def add(self, batch: pa.RecordBatch) -> None:
        for start in range(0, batch.num_rows, _MAX_ROWS_PER_BLOCK):
            self._waiting.append(batch.slice(start, _MAX_ROWS_PER_BLOCK))
            if (
                sum(part.num_rows for part in self._waiting) >= _MAX_ROWS_PER_BLOCK
                or sum(part.nbytes for part in self._waiting) >= _BYTES_PER_BLOCK
            ):
                self._write()

    def finish(self) -> StoredTable:
        if self._waiting:
            self._write()
        assert self._blocks is not None
        self._blocks.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._unfinished.replace(self._path)
        return StoredTable(self._path)

    def _write(self) -> None:
        block = _join(self._waiting)
        if self._blocks is None:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._blocks = pa.ipc.new_file(self._file, block.schema, options=options)
        self._blocks.write_batch(block)
        self._waiting = []


def _join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches)
    columns = [
        # An Arrow file has one dictionary for all blocks, so decode dictionaries.
        column.cast(column.type.value_type)
        if pa.types.is_dictionary(column.type)
        else column
        for column in table.columns
    ]
    whole = pa.table(columns, names=table.column_names, metadata=table.schema.metadata)
    return pa.concat_batches(whole.to_batches())


class SpooledTable:
    """Collects the blocks of a table in a temporary file.

    The table that it returns is mapped into memory: its rows take memory only while
    they are read. `batches` reads them without a map, one after another.
    """

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
