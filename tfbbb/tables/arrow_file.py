"""Reads Arrow IPC and Parquet files block by block."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

_MAGIC = b"ARROW1"
_MAX_BATCH_CELLS = 2**20
_MAX_BATCH_ROWS = 2**16
_BUFFER_BYTES = 2**20


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


class ParquetFile:
    """A Parquet file as record batches."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def header(self) -> list[str]:
        """Returns the names of the columns."""
        return list(next(self.batches()).schema.names)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields an empty batch, then the rows in batches."""
        # Without `pre_buffer`, Arrow reads a page at a time instead of a whole column
        # of a row group.
        with pa.parquet.ParquetFile(
            self._path, pre_buffer=False, buffer_size=_BUFFER_BYTES
        ) as file:
            schema = file.schema_arrow
            rows = _MAX_BATCH_CELLS // max(1, len(schema))
            size = min(max(1, rows), _MAX_BATCH_ROWS)
            yield pa.RecordBatch.from_pylist([], schema)
            yield from file.iter_batches(batch_size=size)
