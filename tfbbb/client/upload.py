"""Upload of a table as a stream of bytes."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tfbbb.base.types import TableLike
from tfbbb.client.errors import ClientError
from tfbbb.tables.given_table import as_arrow, is_table

# Called with the number of bytes sent and the total.
Progress = Callable[[int, int], object]

_BLOCK_BYTES = 2**18


class Upload:
    """Yields the blocks of a file, and reports the progress."""

    def __init__(self, file: IO[bytes], name: str, progress: Progress | None) -> None:
        self.name = name
        self._file = file
        self._progress = progress
        self._size = os.fstat(file.fileno()).st_size
        # The service recognises the format from the first bytes.
        self.headers = {
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
        path = _path(table, Path(directory))
        try:
            file = path.open("rb")
        except OSError as error:
            raise ClientError(f"{path}: {error.strerror}.") from None
        with file:
            yield Upload(file, name or path.name, progress)


def _path(table: TableLike, directory: Path) -> Path:
    """Returns the path of a file, or writes a table to one."""
    if is_table(table):
        from pyarrow import parquet

        path = directory / "table.parquet"
        parquet.write_table(as_arrow(table), path, compression="zstd")
        return path
    if isinstance(table, str | os.PathLike):
        return Path(table)
    raise TypeError(
        "`table` must be the path of a file or a table of pyarrow, pandas or polars. "
        f"Received: {type(table).__name__}"
    )
