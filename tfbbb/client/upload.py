"""Upload of a table as a stream of bytes."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tfbbb.client.errors import ClientError
from tfbbb.data.given_table import as_arrow, is_table
from tfbbb.types import TableLike

# Called with the number of bytes sent and the total.
Progress = Callable[[int, int], object]

_BLOCK_BYTES = 2**18


class Upload:
    """Yields the blocks of a file and reports the progress.

    Args:
        file: The file.
        name: Name of the dataset.
        progress: Called after each block, or None.
    """

    def __init__(self, file: IO[bytes], name: str, progress: Progress | None) -> None:
        self.name = name
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self._progress = progress
        self.headers = {
            # The service recognises the format from the first bytes.
            "Content-Type": "application/octet-stream",
            "Content-Length": str(self._size),
        }

    def __iter__(self) -> Iterator[bytes]:
        sent = 0
        while block := self._file.read(_BLOCK_BYTES):
            yield block
            sent += len(block)
            if self._progress is not None:
                self._progress(sent, self._size)


@contextmanager
def open_upload(
    table: TableLike, name: str | None, progress: Progress | None
) -> Iterator[Upload]:
    """Opens a file for upload; first writes a table to a temporary file."""
    with tempfile.TemporaryDirectory() as directory:
        if is_table(table):
            path = Path(directory) / "table.parquet"
            _write_parquet(table, path)
        elif isinstance(table, str | os.PathLike):
            path = Path(table)
        else:
            raise TypeError(
                "`table` must be the path of a file or a table of pyarrow, pandas or "
                f"polars. Received: {type(table).__name__}"
            )
        try:
            file = path.open("rb")
        except OSError as error:
            raise ClientError(f"{path}: {error.strerror}.") from None
        with file:
            yield Upload(file, name or path.name, progress)


def _write_parquet(table: TableLike, path: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(as_arrow(table), path, compression="zstd")
