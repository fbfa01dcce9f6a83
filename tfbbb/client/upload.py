"""Upload of a table as a stream of bytes."""

import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from tfbbb.base.types import TableLike
from tfbbb.client.errors import ClientError
from tfbbb.tables.given_table import as_arrow, is_table

# Called with the number of bytes sent and the total.
Progress = Callable[[int, int], object]

_BLOCK_BYTES = 2**18


class Upload:
    """Yields the blocks of a file, or of a form of several, and reports the progress.

    Args:
        files: The files, with their names.
        name: Name of the dataset.
        progress: Called after each block, or None.
    """

    def __init__(
        self,
        files: Sequence[tuple[str, IO[bytes]]],
        name: str,
        progress: Progress | None,
    ) -> None:
        self.name = name
        self._progress = progress
        self._files = [file for _, file in files]
        self._heads, self._end = [b""] * len(files), b""
        # The service recognises the format from the first bytes.
        content_type = "application/octet-stream"
        if len(files) > 1:
            boundary = secrets.token_hex(16)
            content_type = f"multipart/form-data; boundary={boundary}"
            self._heads = [_head(boundary, shown) for shown, _ in files]
            self._end = f"\r\n--{boundary}--\r\n".encode()
        sizes = [os.fstat(file.fileno()).st_size for file in self._files]
        self._size = sum(sizes) + sum(map(len, self._heads)) + len(self._end)
        self.headers = {
            "Content-Type": content_type,
            "Content-Length": str(self._size),
        }

    def __iter__(self) -> Iterator[bytes]:
        sent = 0
        for block in self._blocks():
            yield block
            sent += len(block)
            if self._progress is not None:
                self._progress(sent, self._size)

    def _blocks(self) -> Iterator[bytes]:
        for head, file in zip(self._heads, self._files, strict=True):
            if head:
                yield head
            while block := file.read(_BLOCK_BYTES):
                yield block
        if self._end:
            yield self._end


def _head(boundary: str, name: str) -> bytes:
    """Returns what stands before the content of a file in a form."""
    shown = name.replace('"', "%22").replace("\r", " ").replace("\n", " ")
    return (
        f"\r\n--{boundary}\r\nContent-Disposition: form-data; "
        f'name="file"; filename="{shown}"\r\n\r\n'
    ).encode()


@contextmanager
def open_upload(
    table: TableLike | Sequence[TableLike],
    name: str | None,
    progress: Progress | None,
) -> Iterator[Upload]:
    """Opens files for upload; first writes tables to temporary files."""
    tables = [*table] if isinstance(table, list | tuple) else [table]
    if not tables:
        raise ValueError("There is nothing to upload. Received: an empty list")
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        files: list[tuple[str, IO[bytes]]] = []
        for number, one in enumerate(tables, start=1):
            path = _path(one, directory, number)
            shown = "table.parquet" if path.parent == directory else path.name
            try:
                files.append((shown, stack.enter_context(path.open("rb"))))
            except OSError as error:
                raise ClientError(f"{path}: {error.strerror}.") from None
        yield Upload(files, name or files[0][0], progress)


def _path(table: TableLike, directory: Path, number: int) -> Path:
    """Returns the path of a file, or writes a table to one."""
    if is_table(table):
        path = directory / f"{number}.parquet"
        _write_parquet(table, path)
        return path
    if isinstance(table, str | os.PathLike):
        return Path(table)
    raise TypeError(
        "`table` must be the path of a file or a table of pyarrow, pandas or polars, "
        f"or a list of them. Received: {type(table).__name__}"
    )


def _write_parquet(table: TableLike, path: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(as_arrow(table), path, compression="zstd")
