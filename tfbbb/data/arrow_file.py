"""Reading Arrow's own format block by block."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

_MAGIC = b"ARROW1"
_MOST_ROWS_AT_ONCE = 2**16


class ArrowFile:
    """An Arrow IPC file or stream as record batches.

    A batch of the file is in memory at a time.

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
                # Offsets come from the file: wrong ones would be followed anywhere.
                batch.validate(full=True)
                for start in range(0, batch.num_rows, _MOST_ROWS_AT_ONCE):
                    yield batch.slice(start, _MOST_ROWS_AT_ONCE)
