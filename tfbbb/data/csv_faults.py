"""Finds the line at which a CSV file is not a table."""

import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tfbbb.data.content import BEGINNING_BYTES, describe_content, table_format
from tfbbb.data.table_error import TableError


@dataclass(frozen=True)
class CsvSource:
    """The bytes of a CSV file.

    Attributes:
        path: The file.
        compressed: Whether it is compressed with gzip.
        longest: Largest allowed number of bytes of a line.
    """

    path: Path
    compressed: bool
    longest: int

    def stream(self) -> pa.NativeFile:
        """Opens the file for Arrow."""
        compression = "gzip" if self.compressed else None
        return pa.input_stream(str(self.path), compression=compression)

    def open(self) -> gzip.GzipFile | io.BufferedReader:
        """Opens the file for Python."""
        return gzip.open(self.path) if self.compressed else self.path.open("rb")


def check_content(source: CsvSource) -> None:
    """Raises a `TableError` if the file is not CSV but, for instance, JSON."""
    with source.open() as file:
        beginning = file.read(BEGINNING_BYTES)
    found = describe_content(beginning)
    if found is None:
        return
    advice = "save the table as CSV or Parquet."
    if not source.compressed and (format := table_format(beginning)):
        advice = f"rename the file to a name that ends in .{format}."
    raise TableError(f"{source.path} holds {found}, not CSV; {advice}")


def check_separator(source: CsvSource, header: Sequence[str]) -> None:
    """Raises a `TableError` if a header of one name seems to hold several."""
    if len(header) == 1 and (separator := re.search(r"[;\t|]", header[0])):
        raise TableError(
            f"{source.path} seems to be separated by {separator[0]!r}; separate its "
            "columns with commas."
        )


def read_header(source: CsvSource) -> list[str]:
    """Returns the cells of the first line, or an empty list if it cannot be read."""
    lines = csv.reader(_lines(source))
    try:
        return next((row for row in lines if row), [])
    except (csv.Error, UnicodeDecodeError):
        return []


def check_encoding(source: CsvSource) -> None:
    """Raises a `TableError` that names the first line that is not UTF-8 text."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    number = 1
    with source.open() as file:
        while piece := file.readline(source.longest):
            try:
                decoder.decode(piece, final=piece.endswith(b"\n"))
            except UnicodeDecodeError:
                raise TableError(
                    f"{source.path} is not UTF-8 text: line {number} cannot "
                    "be decoded; save it as UTF-8."
                ) from None
            if b"\0" in piece:
                raise TableError(
                    f"{source.path} is not UTF-8 text: line {number} has a NUL "
                    "character, as UTF-16 does; save it as UTF-8."
                )
            number += piece.endswith(b"\n")


def check_rows(source: CsvSource) -> None:
    """Raises a `TableError` that names the first malformed line.

    Every line must have as many cells as the header.
    """
    lines = csv.reader(_lines(source), strict=True)
    header: list[str] | None = None
    num_rows = 0
    start = 1
    try:
        for row in lines:
            if row and header is None:
                header = row
                check_separator(source, header)
            elif row and len(row) != len(header or ()):
                raise TableError(
                    f"{source.path}: line {start} has {_count_cells(row)}, but the "
                    f"header has {_count_cells(header or [])}."
                )
            elif row:
                num_rows += 1
            start = lines.line_num + 1
    except csv.Error as error:
        raise TableError(f"{source.path}: line {start}: {error}.") from None
    if header is None:
        raise TableError(f"{source.path} is empty.")
    if not num_rows:
        raise TableError(f"{source.path} has a header but no rows.")


def _lines(source: CsvSource) -> Iterator[str]:
    with (
        source.open() as file,
        io.TextIOWrapper(file, "utf-8-sig", newline="") as text,
    ):
        number = 1
        while line := text.readline(source.longest):
            if len(line) == source.longest:
                raise TableError(
                    f"{source.path}: line {number} is longer than {source.longest} "
                    "characters; is it a CSV file?"
                )
            yield line
            number += 1


def _count_cells(row: list[str]) -> str:
    return "1 cell" if len(row) == 1 else f"{len(row)} cells"
