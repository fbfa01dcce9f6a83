"""Tables that are larger than the memory, in files."""

import tempfile
from types import TracebackType
from typing import Self

import pyarrow as pa


class SpooledTable:
    """Collects the blocks of a table in a temporary file.

    The table that it returns is mapped into memory: its rows take memory only while
    they are read.

    Example:

    >>> with SpooledTable() as spooled:
    ...     for start in (0, 2):
    ...         spooled.append(pa.table({"row": [start, start + 1]}))
    ...     spooled.table()["row"].to_pylist()
    [0, 1, 2, 3]
    """

    def __enter__(self) -> Self:
        self._file = tempfile.NamedTemporaryFile(prefix="tfbbb-", suffix=".arrow")
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
