"""Reads the file of a table block by block, in bounded memory."""

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import pyarrow as pa

from tfbbb.tables.arrow_file import ArrowFile, ParquetFile
from tfbbb.tables.column_names import check_column_names
from tfbbb.tables.content import BEGINNING_BYTES, check_content
from tfbbb.tables.csv_file import CsvFile
from tfbbb.tables.csv_source import Compression
from tfbbb.tables.dialect import Dialect
from tfbbb.tables.format import (
    infer_format,
    validate_format,
)
from tfbbb.tables.json_file import JsonFile
from tfbbb.tables.pandas_index import without_index
from tfbbb.tables.table_error import NoRowsError, StartOver, TableError
from tfbbb.tables.values import without_views
from tfbbb.tables.workbook_file import Sheet, WorkbookFile

_COMPRESSIONS: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}

T = TypeVar("T")


class _File(Protocol):
    def header(self) -> list[str]: ...

    def batches(self) -> Iterator[pa.RecordBatch]: ...


class TableScan:
    r"""Reads the rows of a file, a block at a time, in bounded memory.

    Interprets a file as `read_table` does, but the cells of CSV, JSON lines and
    workbooks are texts, as they are written: `tfbbb.tables.plain_values.PlainTypes`
    has their types, and a schema or a model finds or knows how they are written. If
    later rows show that those before were misread, reading starts over. Workbooks
    (`.xlsx` and `.ods`) are in memory as a whole.

    Args:
        path: File to read.
        format: `"csv"`, `"tsv"` (either also with `".gz"` or `".zst"`), `"jsonl"`,
            `"parquet"`, `"arrow"` (an Arrow IPC file or stream, or Feather), `"xlsx"`
            or `"ods"`. Defaults to the suffix of the file's name.
        sheet: Name of the sheet of a workbook; by default the first with rows.

    Raises:
        TableError: The file is missing or empty, its name has another suffix, or it has
            no sheets and `sheet` is given. Every method raises this error for a file
            that is not a table.
        ValueError: `format` has another value.

    Example:
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("name,age\nAda,36\nBob,NA\n")
    >>> scan = TableScan(path)
    >>> [batch.num_rows for batch in scan.batches()]
    [2]
    >>> scan.schema.names, scan.num_rows
    (['name', 'age'], 2)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        sheet: str | None = None,
    ) -> None:
        self.path = Path(path)
        self.format = (
            infer_format(self.path) if format is None else validate_format(format)
        )
        self.sheet = sheet
        if sheet is not None and self.format not in ("xlsx", "ods"):
            raise TableError(
                f"Only .xlsx and .ods files have sheets, and {self.path} is read as "
                f"{self.format}; leave out `sheet`. Received: sheet={sheet!r}"
            )
        _check_exists(self.path)
        self._file = self._open()
        self._schema: pa.Schema | None = None
        self._num_rows = 0
        self._without_index = False

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns; the first access reads the file."""
        if self._schema is None:
            self.collect(lambda: None, lambda nothing, batch: None)
            assert self._schema is not None
        return self._schema

    @property
    def num_rows(self) -> int:
        """Number of rows, at least one; the first access reads the file."""
        assert self.schema is not None
        return self._num_rows

    @property
    def without_index(self) -> bool:
        """Whether an index that pandas wrote was dropped."""
        assert self.schema is not None
        return self._without_index

    @property
    def dialect(self) -> Dialect | Sheet | None:
        """What the file does not state and reading found; the first access reads it.

        The encoding, the delimiter, the decimal mark and the header line of a CSV file;
        the sheet of a workbook; None for other formats.
        """
        assert self.schema is not None
        if isinstance(self._file, CsvFile | WorkbookFile):
            return self._file.dialect
        return None

    def header(self) -> list[str]:
        """Returns the names of all columns, from the beginning of the file.

        Returns an empty list if the beginning cannot be read; the other methods raise
        the reason.
        """
        with self._convert_errors():
            self._check_content()
            return self._file.header()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields all rows in their order, in batches of at least one row."""
        assert self.schema is not None
        yield from (batch for batch in self.read() if batch.num_rows)

    def collect(
        self, new: Callable[[], T], add: Callable[[T, pa.RecordBatch], object]
    ) -> T:
        """Accumulates all batches, in one pass unless reading starts over.

        Args:
            new: Creates an empty accumulator; called again if reading starts over.
            add: Adds a batch to the accumulator.

        Returns:
            The accumulator with all batches.
        """
        while True:
            total, schema, num_rows = new(), None, 0
            try:
                for batch in self.read():
                    schema = schema or batch.schema
                    num_rows += batch.num_rows
                    if batch.num_rows:
                        add(total, batch)
            except StartOver:
                continue
            if schema is None or not num_rows:
                raise NoRowsError(self.path)
            self._schema, self._num_rows = schema, num_rows
            return total

    def head(self, num_rows: int, skip: int = 0) -> pa.Table:
        """Returns the first rows, or so many after some others.

        Args:
            num_rows: Number of rows to return, if there are so many.
            skip: Number of rows before them.
        """
        while True:
            batches: list[pa.RecordBatch] = []
            left, before = num_rows, skip
            try:
                for batch in self.read():
                    passed = min(before, batch.num_rows)
                    before -= passed
                    # Rows that are passed over stay in memory no longer.
                    if passed == batch.num_rows and batches:
                        continue
                    batches.append(batch.slice(passed, left))
                    left -= batches[-1].num_rows
                    if not left:
                        break
            except StartOver:
                continue
            return pa.Table.from_batches(batches)

    def place(self, row: int) -> str:
        """Returns where a row is: "line 3" of text, else "row 2".

        Args:
            row: Index of the row; -1 for the header.
        """
        if isinstance(self._file, CsvFile):
            return f"line {self._file.line(row)}"
        if self.format == "jsonl":
            return f"line {max(row, 0) + 1}"
        return "the header" if row < 0 else f"row {row + 1}"

    def _open(self) -> _File:
        if self.format == "parquet":
            return ParquetFile(self.path)
        if self.format == "arrow":
            return ArrowFile(self.path)
        if self.format == "jsonl":
            return JsonFile(self.path)
        if self.format in ("xlsx", "ods"):
            return WorkbookFile(self.path, sheet=self.sheet)
        return CsvFile(
            self.path,
            compression=_COMPRESSIONS.get(Path(self.format).suffix),
            delimiter="\t" if self.format.startswith("tsv") else ",",
        )

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yields all rows in one pass; see `batches`.

        Raises:
            StartOver: The rows so far were misread, as those of `CsvFile.batches`.
        """
        names: list[str] | None = None
        unnamed = isinstance(self._file, CsvFile | WorkbookFile)
        with self._convert_errors():
            self._check_content()
            for stored in self._file.batches():
                batch = without_index(stored, unnamed=unnamed)
                if names is None:
                    names = batch.schema.names
                    check_column_names(names, where=f"{self.path}: ")
                    self._without_index = len(names) < len(stored.schema)
                yield without_views(batch)

    def _check_content(self) -> None:
        """Raises a `TableError` if the file has another format than its suffix."""
        if isinstance(self._file, CsvFile):
            # A compressed file shows its content after decompression.
            return
        with self.path.open("rb") as file:
            check_content(self.path, file.read(BEGINNING_BYTES), self.format)

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Turns errors of reading the file into `TableError`."""
        try:
            yield
        except pa.ArrowMemoryError:
            # The cause is the machine's memory, not the file.
            raise
        except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise TableError(
                f"{self.path} cannot be read as {self.format}: {reason}"
            ) from error


def _check_exists(path: Path) -> None:
    if not path.is_file():
        problem = "is a directory, not a file" if path.is_dir() else "does not exist"
        raise TableError(f"{path} {problem}.")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty.")
