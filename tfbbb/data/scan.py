"""Reads the file of a table block by block, in bounded memory."""

import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar, get_args

import pyarrow as pa

from tfbbb.data.arrow_file import ArrowFile
from tfbbb.data.column_names import check_column_names
from tfbbb.data.content import Format
from tfbbb.data.csv_file import CsvFile, TooNarrow
from tfbbb.data.pandas_index import without_index
from tfbbb.data.parquet_file import ParquetFile
from tfbbb.data.table_error import TableError
from tfbbb.data.values import without_views

_FORMATS: tuple[Format, ...] = get_args(Format)

T = TypeVar("T")


class _File(Protocol):
    def header(self) -> list[str]: ...

    def batches(self) -> Iterator[pa.RecordBatch]: ...


class TableScan:
    r"""Reads the rows of a file, a block at a time, in bounded memory.

    Interprets a file as `read_table` does. The column types of a CSV file fit all of
    its rows: if a type turns out too narrow, reading starts over with a wider type.

    Args:
        path: File to read.
        format: `"csv"`, `"csv.gz"`, `"parquet"` or `"arrow"` (an Arrow IPC file or
            stream). Defaults to the suffix of the file's name.
        text_columns: Names of columns of a CSV file to read as text, even if their
            cells look like numbers (codes such as `007`). Names that the file lacks
            are ignored.

    Raises:
        TableError: The file is missing or empty, or its name has another suffix. Every
            method raises this error for a file that is not a table.
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
        text_columns: Iterable[str] = (),
    ) -> None:
        self.path = Path(path)
        self.format = (
            _infer_format(self.path) if format is None else _validate_format(format)
        )
        _check_exists(self.path)
        self.text_columns = tuple(text_columns)
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

    def header(self) -> list[str]:
        """Returns the names of all columns, from the beginning of the file.

        Returns an empty list if the beginning cannot be read; the other methods raise
        the reason.
        """
        with self._convert_errors():
            return self._file.header()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields all rows in their order, in batches of at least one row."""
        assert self.schema is not None
        yield from (batch for batch in self._read() if batch.num_rows)

    def collect(
        self, new: Callable[[], T], add: Callable[[T, pa.RecordBatch], object]
    ) -> T:
        """Accumulates all batches, in one pass over the file if the types allow.

        Args:
            new: Creates an empty accumulator; called again if reading starts over.
            add: Adds a batch to the accumulator.

        Returns:
            The accumulator with all batches.
        """
        while True:
            total, schema, num_rows = new(), None, 0
            try:
                for batch in self._read():
                    schema = schema or batch.schema
                    num_rows += batch.num_rows
                    if batch.num_rows:
                        add(total, batch)
            except TooNarrow:
                continue
            if schema is None or not num_rows:
                raise TableError(f"{self.path} has a header but no rows.")
            self._schema, self._num_rows = schema, num_rows
            return total

    def head(self, num_rows: int) -> pa.Table:
        """Returns the first rows.

        The column types of a CSV file are those that fit its first block.
        """
        batches = []
        for batch in self._read():
            batches.append(batch.slice(0, num_rows))
            num_rows -= batches[-1].num_rows
            if not num_rows:
                break
        return pa.Table.from_batches(batches)

    def _open(self) -> _File:
        if self.format == "parquet":
            return ParquetFile(self.path)
        if self.format == "arrow":
            return ArrowFile(self.path)
        return CsvFile(
            self.path,
            compressed=self.format == "csv.gz",
            text_columns=self.text_columns,
        )

    def _read(self) -> Iterator[pa.RecordBatch]:
        names: list[str] | None = None
        with self._convert_errors():
            for stored in self._file.batches():
                batch = without_index(stored, unnamed=isinstance(self._file, CsvFile))
                if names is None:
                    names = batch.schema.names
                    check_column_names(names, where=f"{self.path}: ")
                    self._without_index = len(names) < len(stored.schema)
                yield without_views(batch)

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


def _validate_format(format: str) -> Format:
    for known in _FORMATS:
        if format == known:
            return known
    raise ValueError(
        f"`format` must be one of {', '.join(_FORMATS)}. Received: format={format!r}"
    )


def _infer_format(path: Path) -> Format:
    for format in _FORMATS:
        if path.name.lower().endswith(f".{format}"):
            return format
    suffixes = [f".{format}" for format in _FORMATS]
    raise TableError(
        f"{path} has an unknown format: its name must end in "
        f"{', '.join(suffixes[:-1])} or {suffixes[-1]}."
    )


def _check_exists(path: Path) -> None:
    if not path.is_file():
        problem = "is a directory, not a file" if path.is_dir() else "does not exist"
        raise TableError(f"{path} {problem}.")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty.")
