"""Reads Arrow IPC files block by block."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

_MAGIC = b"ARROW1"
_MAX_BATCH_ROWS = 2**16


class ArrowFile:
    """An Arrow IPC file or stream as record batches.

    Holds one batch of the file in memory at a time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def header(self) -> list[str]:
        """Returns the names of the columns."""
        return list(next(self.batches()).schema.names)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields an empty batch, then the rows in batches."""
        with pa.OSFile(str(self._path)) as source:
            is_file = source.read(len(_MAGIC)) == _MAGIC
            source.seek(0)
            if is_file:
                file = pa.ipc.open_file(source)
                stored = map(file.get_batch, range(file.num_record_batches))
                schema = file.schema
            else:
                stored = pa.ipc.open_stream(source)
                schema = stored.schema
            yield pa.RecordBatch.from_pylist([], schema)
            for batch in stored:
                # The file gives the offsets of texts: Arrow would read memory at wrong
                # offsets without this check.
                batch.validate(full=True)
                for start in range(0, batch.num_rows, _MAX_BATCH_ROWS):
                    yield batch.slice(start, _MAX_BATCH_ROWS)
