"""A version as one file."""

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_BLOCK_BYTES = 2**20


class _Sink(io.RawIOBase):
    """What a ZIP file is written to; it cannot be sought."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: Any, /) -> int:
        """Keeps bytes until they are taken."""
        self._written += data
        return memoryview(data).nbytes

    def take(self) -> bytes:
        """Returns what was written since it was called before."""
        taken = bytes(self._written)
        self._written.clear()
        return taken


def zipped(directory: Path) -> Iterator[bytes]:
    """Yields the files of a directory as a ZIP file, a few blocks in memory."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in directory.rglob("*") if path.is_file()):
            name = path.relative_to(directory).as_posix()
            with (
                path.open("rb") as file,
                archive.open(name, "w", force_zip64=True) as entry,
            ):
                while block := file.read(_BLOCK_BYTES):
                    entry.write(block)
                    yield sink.take()
    yield sink.take()
