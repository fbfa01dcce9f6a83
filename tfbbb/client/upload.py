"""Sending a table as a stream of bytes."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tfbbb.client.errors import ClientError
from tfbbb.data.given_table import as_arrow, is_table

# Bytes sent, and bytes in all.
Progress = Callable[[int, int], object]

_BYTES_AT_ONCE = 2**18


class Upload:
    """A file on its way, block by block.

    Args:
        file: The file.
        name: Name of the table.
        progress: Told how far it is.
    """

    def __init__(self, file: IO[bytes], name: str, progress: Progress | None) -> None:
        self.name = name
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self._progress = progress
        self.headers = {
            # The service tells the format by the first bytes.
            "Content-Type": "application/octet-stream",
            "Content-Length": str(self._size),
        }

    def __iter__(self) -> Iterator[bytes]:
        sent = 0
        while block := self._file.read(_BYTES_AT_ONCE):
            yield block
            sent += len(block)
            if self._progress is not None:
                self._progress(sent, self._size)


@contextmanager
def uploading(
    table: Any, name: str | None, progress: Progress | None
) -> Iterator[Upload]:
    """Opens a file, or writes a table to one, for as long as it is sent."""
    with tempfile.TemporaryDirectory() as directory:
        if is_table(table):
            path = Path(directory) / "table.parquet"
            _write(table, path)
        elif isinstance(table, str | os.PathLike):
            path = Path(table)
        else:
            raise TypeError(
                "What is uploaded must be the path of a file, or a table of pyarrow, "
                f"pandas or polars. Received: {type(table).__name__}"
            )
        try:
            file = path.open("rb")
        except OSError as error:
            raise ClientError(f"{path}: {error.strerror}.") from None
        with file:
            yield Upload(file, name or path.name, progress)


def _write(table: Any, path: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(as_arrow(table), path, compression="zstd")
