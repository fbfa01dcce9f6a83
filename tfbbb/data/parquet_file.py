"""Reading Parquet block by block."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

_CELLS_AT_ONCE = 2**20
_MOST_ROWS_AT_ONCE = 2**16
_BUFFER_BYTES = 2**20


class ParquetFile:
    """A Parquet file as record batches.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def header(self) -> list[str]:
        """Returns the names of the columns."""
        return list(next(self.batches()).schema.names)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows, and an empty batch for none."""
        # A page at a time, rather than all that a row group has of a column.
        with pa.parquet.ParquetFile(
            self._path, pre_buffer=False, buffer_size=_BUFFER_BYTES
        ) as file:
            schema = file.schema_arrow
            rows = _CELLS_AT_ONCE // max(1, len(schema))
            size = min(max(1, rows), _MOST_ROWS_AT_ONCE)
            yield pa.RecordBatch.from_pylist([], schema)
            yield from file.iter_batches(batch_size=size)
