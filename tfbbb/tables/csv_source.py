"""The bytes of a CSV file, compressed or not."""

import codecs
import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa

from tfbbb.tables.content import BEGINNING_BYTES
from tfbbb.tables.table_error import TableError

# Decodes bytes that a codec lacks as Windows-1252, or as Latin-1 what that lacks.
AS_WINDOWS_1252 = "tfbbb-as-windows-1252"
Compression = Literal["gzip", "zstd"]


@dataclass(frozen=True)
class CsvSource:
    """The bytes of a CSV file.

    Attributes:
        path: The file.
        compression: How it is compressed, or None.
        longest: Largest allowed number of bytes of a line.
    """

    path: Path
    compression: Compression | None
    longest: int

    def stream(self) -> pa.NativeFile:
        """Opens the file for Arrow."""
        return pa.input_stream(str(self.path), compression=self.compression)

    def open(self) -> io.BufferedReader:
        """Opens the file for Python."""
        if self.compression == "gzip":
            return io.BufferedReader(gzip.open(self.path))
        if self.compression == "zstd":
            return io.BufferedReader(self.stream())
        return self.path.open("rb")

    def beginning(self) -> bytes:
        """Returns the first `BEGINNING_BYTES`."""
        with self.open() as file:
            return file.read(BEGINNING_BYTES)

    def lines(
        self, encoding: str, *, errors: str = "strict", is_damaged: bool = False
    ) -> Iterator[str]:
        """Yields the lines with their line ends."""
        codec = _codec(encoding)
        if is_damaged:
            errors = AS_WINDOWS_1252
        with (
            self.open() as file,
            io.TextIOWrapper(file, codec, errors=errors, newline="") as text,
        ):
            number = 1
            while line := text.readline(self.longest):
                if len(line) == self.longest:
                    raise TableError(
                        f"{self.path}: line {number} is longer than {self.longest} "
                        "characters; is it a CSV file?"
                    )
                yield line
                number += 1


def decode(beginning: bytes, encoding: str, *, is_damaged: bool) -> str:
    """Returns the text of the first bytes of a file, which may cut a character."""
    errors = AS_WINDOWS_1252 if is_damaged else "ignore"
    return codecs.getincrementaldecoder(_codec(encoding))(errors).decode(beginning)


def _codec(encoding: str) -> str:
    return "utf-8-sig" if encoding == "utf-8" else encoding


def _decode_as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    wrong = error.object[error.start : error.end]
    text = "".join(
        byte.decode("cp1252", errors="ignore") or byte.decode("latin-1")
        for byte in (wrong[place : place + 1] for place in range(len(wrong)))
    )
    return text, error.end


codecs.register_error(AS_WINDOWS_1252, _decode_as_windows_1252)
