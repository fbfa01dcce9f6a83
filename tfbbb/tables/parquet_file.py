"""Reads Parquet files block by block."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

_MAX_BATCH_CELLS = 2**20
_MAX_BATCH_ROWS = 2**16
_BUFFER_BYTES = 2**20


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
