"""Tables that are larger than the memory, in files."""

import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa


class SpooledTable:
    """Collects the blocks of a table in a temporary file.

    The table that it returns is mapped into memory: its rows take memory only while
    they are read. `rows` reads them without a map, one after another.

    Args:
        directory: Where to keep the file; where the system keeps such by default.

    Example:

    >>> with SpooledTable() as spooled:
    ...     for start in (0, 2):
    ...         spooled.append(pa.table({"row": [start, start + 1]}))
    ...     spooled.table()["row"].to_pylist()
    [0, 1, 2, 3]
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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

    def rows(self) -> "SpooledRows":
        """Returns the rows of all blocks, of which there is at least one, in order."""
        assert self._writer is not None
        self._writer.close()
        return SpooledRows(pa.ipc.open_stream(pa.OSFile(self._file.name)))


class SpooledRows:
    """Reads the rows of a table, as many at a time as are asked for."""

    def __init__(self, reader: pa.RecordBatchStreamReader) -> None:
        self._reader = reader
        self._left = reader.read_next_batch()

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        names: list[str] = self._reader.schema.names
        return names

    def take(self, num_rows: int) -> pa.RecordBatch:
        """Returns the next rows."""
        parts = []
        while num_rows:
            if not self._left.num_rows:
                self._left = self._reader.read_next_batch()
            parts.append(self._left.slice(0, num_rows))
            num_rows -= parts[-1].num_rows
            self._left = self._left.slice(parts[-1].num_rows)
        (batch,) = pa.Table.from_batches(parts).combine_chunks().to_batches()
        return batch
