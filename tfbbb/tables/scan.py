"""Reads the file of a table, as a whole or block by block in bounded memory."""

import os
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from tfbbb.tables.column_names import check_column_names
from tfbbb.tables.csv_file import CsvFile
from tfbbb.tables.dialect import Dialect
from tfbbb.tables.format import (
    BEGINNING_BYTES,
    check_content,
    infer_format,
    validate_format,
)
from tfbbb.tables.json_file import JsonFile
from tfbbb.tables.plain_values import typed_table
from tfbbb.tables.table_error import NoRowsError, TableError
from tfbbb.tables.text_encoding import Compression
from tfbbb.tables.values import without_views
from tfbbb.tables.workbook_file import WorkbookFile

_MAGIC = b"ARROW1"
_INDEX = re.compile(r"__index_level_\d+__")
_MAX_BATCH_CELLS = 2**20
_MAX_BATCH_ROWS = 2**16
_BUFFER_BYTES = 2**20


_COMPRESSIONS: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}


class _TypedFile:
    """An Arrow or a Parquet file as record batches; the first batch is empty."""

    def __init__(self, path: Path, *, is_parquet: bool) -> None:
        self._path, self._read = path, _read_parquet if is_parquet else _read_arrow

    @property
    def names(self) -> list[str]:
        return list(next(self.batches()).schema.names)

    def batches(self) -> Iterator[pa.RecordBatch]:
        return self._read(self._path)


def _read_arrow(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path)) as source:
        is_file = source.read(len(_MAGIC)) == _MAGIC
        source.seek(0)
        file = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
        yield pa.RecordBatch.from_pylist([], file.schema)
        stored = file
        if is_file:
            stored = map(file.get_batch, range(file.num_record_batches))
        for batch in stored:
            # The file gives the offsets of texts: Arrow would read memory at wrong
            # offsets without this check.
            batch.validate(full=True)
            for start in range(0, batch.num_rows, _MAX_BATCH_ROWS):
                yield batch.slice(start, _MAX_BATCH_ROWS)


def _read_parquet(path: Path) -> Iterator[pa.RecordBatch]:
    # Without `pre_buffer`, Arrow reads a page at a time instead of a whole column of a
    # row group.
    with pa.parquet.ParquetFile(
        path, pre_buffer=False, buffer_size=_BUFFER_BYTES
    ) as file:
        schema = file.schema_arrow
        rows = _MAX_BATCH_CELLS // max(1, len(schema))
        yield pa.RecordBatch.from_pylist([], schema)
        yield from file.iter_batches(batch_size=min(max(1, rows), _MAX_BATCH_ROWS))


class TableScan:
    r"""Reads the rows of a file, a block at a time, in bounded memory.

    Interprets a file as `read_table` does, but the cells of CSV, JSON lines and
    workbooks are texts, as they are written: `tfbbb.tables.plain_values.PlainTypes`
    has their types, and a schema or a model finds or knows how they are written.
    Workbooks (`.xlsx` and `.ods`) are in memory as a whole.

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
        if not self.path.is_file():
            is_directory = self.path.is_dir()
            problem = "is a directory, not a file" if is_directory else "does not exist"
            raise TableError(f"{path} {problem}.")
        if self.path.stat().st_size == 0:
            raise TableError(f"{path} is empty.")
        self._file = self._open()
        self._schema: pa.Schema | None = None
        self._num_rows = 0

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns; the first access reads the beginning."""
        if self._schema is None:
            self._schema = self.head(0).schema
        return self._schema

    @property
    def num_rows(self) -> int:
        """Number of rows, at least one; the first access reads the file."""
        if not self._num_rows:
            deque(self.batches(), maxlen=0)
        return self._num_rows

    @property
    def dialect(self) -> Dialect | None:
        """How a CSV file is written, or the sheet of a workbook, as reading found."""
        assert self.num_rows
        if isinstance(self._file, CsvFile | WorkbookFile):
            return self._file.dialect
        return None

    def header(self) -> list[str]:
        """Returns the names of all columns, or none if the beginning is unreadable."""
        with self._convert_errors():
            self._check_content()
            return self._file.names

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields all rows in their order, in batches of at least one row."""
        num_rows = 0
        for batch in self._read():
            num_rows += batch.num_rows
            if batch.num_rows:
                yield batch
        if not num_rows:
            raise NoRowsError(self.path)
        self._num_rows = num_rows

    def head(self, num_rows: int) -> pa.Table:
        """Returns the first rows."""
        batches: list[pa.RecordBatch] = []
        for batch in self._read():
            batches.append(batch.slice(0, num_rows))
            num_rows -= batches[-1].num_rows
            if not num_rows:
                break
        if not batches:
            raise NoRowsError(self.path)
        return pa.Table.from_batches(batches)

    def _open(self) -> CsvFile | JsonFile | WorkbookFile | _TypedFile:
        if self.format in ("parquet", "arrow"):
            return _TypedFile(self.path, is_parquet=self.format == "parquet")
        if self.format == "jsonl":
            return JsonFile(self.path)
        if self.format in ("xlsx", "ods"):
            return WorkbookFile(self.path, sheet=self.sheet)
        return CsvFile(
            self.path,
            compression=_COMPRESSIONS.get(Path(self.format).suffix),
            delimiter="\t" if self.format.startswith("tsv") else ",",
        )

    def _read(self) -> Iterator[pa.RecordBatch]:
        """Yields all rows in one pass, without an index that pandas wrote."""
        with self._convert_errors():
            self._check_content()
            for stored in self._file.batches():
                given = stored.schema.names
                kept = [p for p, name in enumerate(given) if not _INDEX.fullmatch(name)]
                batch = stored.select(kept) if len(kept) < len(given) else stored
                if self._schema is None:
                    check_column_names(batch.schema.names, where=f"{self.path}: ")
                batch = without_views(batch)
                self._schema = batch.schema
                yield batch

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


# Predicts a block of rows, whole or in consecutive parts; also gets the index of the
# first row.
Ask = Callable[[pa.Table, int], Iterable[pa.Table]]


def predict_rows(scan: TableScan, ask: Ask) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yields the rows of a table in blocks, each with the table of its predictions."""
    first = 0
    for batch in scan.batches():
        block = pa.Table.from_batches([batch])
        at = 0
        for answers in ask(block, first):
            yield block.slice(at, answers.num_rows), answers
            at += answers.num_rows
        first += block.num_rows


def read_table(
    path: str | os.PathLike[str],
    *,
    sheet: str | None = None,
    notify: Callable[[str], object] | None = None,
) -> pa.Table:
    r"""Reads a table from a file; the suffix of its name is its format.

    - `.csv`, `.tsv`, `.txt`, `.dat`, `.data`, also with `.gz` or `.zst`, and `.tab`:
      text, separated by commas, semicolons, tabs, vertical bars or spaces;
    - `.jsonl`, `.ndjson`: JSON lines, one object per line, without nested values;
    - `.parquet`: Parquet;
    - `.arrow`, `.feather`: Arrow IPC, file or stream; Feather of version 2;
    - `.xlsx`, `.ods`: a sheet of a workbook; needs `pip install 'tfbbb[excel]'`.

    Reading finds the encoding of a CSV file, its delimiter, its quotes, its decimal
    mark and its header, and checks them against all rows. A file that can be read with
    the commas (of `.tsv`: the tabs) is read so. Titles and comments above the header
    are skipped if the header has distinct names that are not numbers, above a column
    of numbers. Columns without a name get one. Cells that a row lacks are missing;
    footers, sums, comments and repeated headers are left out. What was found is
    `TableScan.dialect`.

    The type of a column of a file without types comes from its cells: integers,
    numbers, `true` and `false`, dates, times of day, else text. A cell is missing if it
    is empty or one of `NA`, `N/A`, `n/a`, `#N/A`, `NaN`, `nan`, `NULL`, `null`, quoted
    or not, also in text columns (`None` and `?` are text). Parquet and Arrow files
    store the types of their columns; in these files both NaN and null are missing. The
    unnamed index that pandas writes is dropped: in a Parquet or Arrow file the column
    `__index_level_0__`, in a CSV file or a workbook a first column without a name if it
    holds distinct integers from 0.

    Args:
        path: File to read.
        sheet: Name of the sheet of a workbook; by default the first with rows.
        notify: Called with what was found, unless the file is UTF-8 text with commas
            that begins with its header.

    Returns:
        The table, with at least one row and with unique, non-empty column names.

    Raises:
        TableError: The file is missing, empty, in an unknown encoding or damaged, has
            another suffix, has rows with more cells than the header, or has no sheets
            and `sheet` is given.

    Example:
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("name;height\nAda;1,65\nBob;NA\n")
    >>> read_table(path, notify=print).to_pylist()
    UTF-8 text, separated by semicolons, with decimal commas.
    [{'name': 'Ada', 'height': 1.65}, {'name': 'Bob', 'height': None}]
    """
    return typed_table(read_cells(path, sheet=sheet, notify=notify))


def read_cells(
    path: str | os.PathLike[str],
    *,
    sheet: str | None = None,
    notify: Callable[[str], object] | None = None,
) -> pa.Table:
    """Reads a table, with the cells of a file without types as they are written."""
    scan = TableScan(path, sheet=sheet)
    batches = [*scan.batches()]
    if notify is not None:
        notify_of_reading(scan, notify)
    return pa.Table.from_batches(batches)


def notify_of_reading(scan: TableScan, notify: Callable[[str], object]) -> None:
    """Tells what reading a file has found, as `read_table` does."""
    if scan.dialect is not None and not scan.dialect.is_plain:
        notify(scan.dialect.describe())
