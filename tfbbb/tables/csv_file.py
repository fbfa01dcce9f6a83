"""Reads CSV files block by block, as columns of text."""

import csv
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from tfbbb.tables.column_names import (
    check_column_names,
    complete_names,
    describe_names,
    fill_names,
    may_begin_with_index,
)
from tfbbb.tables.csv_rows import (
    RECENT,
    RegularRows,
    is_number,
    may_end_table,
    read_rows,
)
from tfbbb.tables.dialect import Delimiter, Dialect
from tfbbb.tables.dialect_search import find_dialect
from tfbbb.tables.format import check_content
from tfbbb.tables.notations.missing_marks import MISSING_WORDS, NA
from tfbbb.tables.plain_values import WITH_DECIMAL_COMMAS, WITHOUT_TYPES
from tfbbb.tables.table_error import NoRowsError, StartOver, TableError
from tfbbb.tables.text_encoding import (
    Compression,
    CsvSource,
    check_encoding,
    find_other_encoding,
)

# No line may be longer than a block.
BLOCK_BYTES = 4 * 2**20
_BYTES_PER_BATCH, _CELLS_PER_BATCH = 2**20, 2**16
# Also after a space, as in "1, NaN".
_NULL = [space + word for word in MISSING_WORDS if word != NA for space in ("", " ")]


class TextColumns:
    """Names the columns of a file of texts, and leaves out those without a value.

    Attributes:
        given: The names in the file.
        names: The names of the columns.
        rows: The rows, if Python makes them regular.
        remarks: Sentences on what was named or left out, after the last batch.
    """

    def __init__(self) -> None:
        self.given: list[str] = []
        self.names: list[str] = []
        self.rows: RegularRows | None = None
        self.remarks: tuple[str, ...] = ()
        # Places of the columns without a name that have values.
        self._valued: set[int] = set()

    def parse(self, rows: RegularRows) -> Iterator[pa.RecordBatch]:
        """Yields regular rows in batches."""
        self.rows, cells = rows, (row.cells for row in rows)
        missing, none = pa.array(_NULL), pa.scalar(None, pa.string())
        while some := [*islice(cells, max(1, _CELLS_PER_BATCH // len(self.names)))]:
            columns = (
                pa.array(column, pa.string()) for column in zip(*some, strict=True)
            )
            yield pa.RecordBatch.from_arrays(
                [pc.if_else(pc.is_in(x, missing), none, x) for x in columns], self.names
            )

    def name(
        self,
        path: Path,
        batches: Iterator[pa.RecordBatch],
        metadata: dict[bytes, bytes],
    ) -> Iterator[pa.RecordBatch]:
        """Yields the batches with the names of their columns."""
        check_column_names(self.names, where=f"{path}: ")
        names = dict(enumerate(self.names))
        unnamed = {place for place in names if not self.given[place].strip()}
        unnamed -= self._valued
        index: list[np.ndarray] | None = None
        if may_begin_with_index(self.given) and 0 in unnamed:
            index, names[0] = [], ""
            unnamed.remove(0)
        for place in unnamed:
            del names[place]
        for batch in batches:
            columns = batch.columns
            valued = {p for p in unnamed if columns[p].null_count < batch.num_rows}
            if index is not None:
                numbers = _row_numbers(columns[0])
                valued |= {0} if numbers is None else set()
                index += [] if numbers is None else [numbers]
            self._start_over(valued)
            batch = batch.select([*names]).rename_columns([*names.values()])
            yield batch.replace_schema_metadata(metadata)
        if not names:
            raise TableError(f"{path} is empty.")
        if index:
            ordered = np.sort(np.concatenate(index))
            self._start_over({0} if (np.diff(ordered) == 0).any() else set())
        start = int(index is not None)
        self.remarks = (
            *describe_names(self.given[start:], self.names[start:], unnamed),
            *(self.rows.remarks if self.rows is not None else ()),
        )

    def _start_over(self, valued: set[int]) -> None:
        """Reads columns without a name again that have values, if there are any."""
        if valued:
            self._valued |= valued
            raise StartOver


class CsvFile:
    """A CSV file, compressed or not, as record batches of texts."""

    def __init__(
        self, path: Path, *, compression: Compression | None, delimiter: Delimiter = ","
    ) -> None:
        self._source = CsvSource(path, compression, BLOCK_BYTES)
        self._preferred = delimiter
        self._dialect: Dialect | None = None
        self._columns = TextColumns()
        # Whether Python parses the rows, because Arrow cannot.
        self._is_irregular = False

    @property
    def dialect(self) -> Dialect:
        """How the file writes its table, by the rows read so far."""
        dialect = self._parsed_dialect
        return replace(dialect, remarks=(*dialect.remarks, *self._columns.remarks))

    @property
    def _parsed_dialect(self) -> Dialect:
        if self._dialect is None:
            check_content(
                self._source.path,
                self._source.beginning(),
                "csv",
                is_named_so=self._source.compression is None,
            )
            self._dialect = find_dialect(self._source, preferred=self._preferred)
        return self._dialect

    def header(self) -> list[str]:
        """Returns the names of all columns, or an empty list if unreadable."""
        given = _read_header(self._source, self._parsed_dialect)
        return _complete(given, self._parsed_dialect)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows in batches; the last batches may be empty."""
        dialect, columns = self._parsed_dialect, self._columns
        try:
            columns.given = _read_header(self._source, dialect)
            columns.names = _complete(columns.given, dialect)
            if not columns.given:
                self._check_encoding()
                _check_quotes(self._source, dialect)
                raise TableError(f"{self._source.path} is empty.")
            commas = WITH_DECIMAL_COMMAS if dialect.decimal_mark == "," else {}
            batches = self._check(self._open())
            yield from columns.name(self._source.path, batches, WITHOUT_TYPES | commas)
        except (pa.ArrowInvalid, UnicodeDecodeError, csv.Error) as error:
            if "CSV parse error" in str(error):
                self._regularise()
            # The following checks name the line of any other fault.
            self._check_encoding()
            _check_quotes(self._source, self._parsed_dialect)
            if not any(islice(read_rows(self._source, self._parsed_dialect), 1, 2)):
                raise NoRowsError(self._source.path) from None
            self._regularise()
            raise

    def _regularise(self) -> None:
        """Reads the rows in Python, after Arrow has found them irregular."""
        if self._columns.rows is None and not self._is_irregular:
            self._is_irregular = True
            raise StartOver

    def _open(self) -> Iterator[pa.RecordBatch]:
        """Opens the file."""
        dialect, columns = self._parsed_dialect, self._columns
        columns.rows = None
        if self._is_irregular or not dialect.suits_arrow:
            source = self._source
            return columns.parse(
                RegularRows(
                    lambda: read_rows(source, dialect),
                    dialect,
                    columns.given,
                    where=str(source.path),
                )
            )
        return _stream(self._source, dialect, columns.names)

    def _check(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Checks that all rows were understood; raises `StartOver` if not."""
        # The last batches, of `RECENT` rows together.
        last: list[pa.RecordBatch] = []
        for batch in batches:
            self._check_repeated_header(batch)
            last.append(batch)
            while sum(each.num_rows for each in last[1:]) >= RECENT:
                del last[0]
            yield batch
        if any(batch.num_rows for batch in last):
            self._check_last_row(last)

    def _check_repeated_header(self, batch: pa.RecordBatch) -> None:
        """Raises `StartOver` if Arrow read the names of the columns as a row."""
        names, given = self._columns.names, self._columns.given
        if self._columns.rows is not None or not self._parsed_dialect.has_header:
            return
        named = [place for place, name in enumerate(given) if name.strip()]
        if all(is_number(given[place]) for place in named):
            return
        same = pc.equal(batch.column(named[0]), given[named[0]])
        for row in batch.filter(same).to_pylist() if pc.any(same).as_py() else []:
            if all(row[names[p]] == given[p] for p in named):
                self._regularise()

    def _check_last_row(self, batches: list[pa.RecordBatch]) -> None:
        """Checks that the last of some rows is not cut, and a row of the table."""
        table = pa.Table.from_batches(batches)
        first = max(table.num_rows - RECENT, 0)
        rows = [[*row.values()] for row in table.slice(first).to_pylist()]
        # A cell holds a line break after a quote that is never closed.
        if {"\n", "\r"}.intersection(rows[-1][-1] or ""):
            _check_quotes(self._source, self._parsed_dialect)
        if self._columns.rows is None and may_end_table(rows):
            self._regularise()

    def _check_encoding(self) -> None:
        """Raises a `TableError` if the text is in an unknown encoding."""
        dialect = self._parsed_dialect
        try:
            check_encoding(
                self._source, dialect.encoding, is_damaged=dialect.is_damaged
            )
        except TableError:
            if dialect.encoding != "utf-8" or dialect.is_damaged:
                raise
            self._dialect = find_dialect(
                self._source,
                preferred=self._preferred,
                encoding=find_other_encoding(self._source),
            )
            raise StartOver from None


def _row_numbers(texts: pa.Array) -> np.ndarray | None:
    """Returns texts as the row numbers of a frame; None if they cannot be these."""
    try:
        numbers: np.ndarray = texts.drop_null().cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    return None if texts.null_count or (numbers < 0).any() else numbers


def _read_header(source: CsvSource, dialect: Dialect) -> list[str]:
    """Returns the cells of the header, or an empty list if it cannot be read."""
    try:
        number = 1 if dialect.units_line is None else 2
        first, *others = islice(read_rows(source, dialect), number)
    except (csv.Error, UnicodeDecodeError, ValueError):
        return []
    names = first.cells
    if not dialect.has_header:
        return [""] * len(names)
    if dialect.units_line is not None and len(others[0].cells) == len(names):
        names = fill_names(names, others[0].cells)
    return ["", *names] if dialect.has_row_names else names


def _check_quotes(source: CsvSource, dialect: Dialect) -> None:
    """Raises a `TableError` that names the line of a quote that is never closed."""
    try:
        deque(read_rows(source, dialect, strict=True), maxlen=0)
    except csv.Error as error:
        raise TableError(f"{source.path}: {error}.") from None


def _stream(
    source: CsvSource, dialect: Dialect, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yields the rows that Arrow parses."""
    with source.open_as_utf8(dialect.encoding) as file:
        yield from pa.csv.open_csv(
            file,
            pa.csv.ReadOptions(
                column_names=names,
                skip_rows=dialect.header_line - 1,
                skip_rows_after_names=int(dialect.has_header),
                block_size=min(source.longest, _BYTES_PER_BATCH),
            ),
            pa.csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
            pa.csv.ConvertOptions(
                null_values=_NULL,
                strings_can_be_null=True,
                column_types=dict.fromkeys(names, pa.string()),
            ),
        )


def _complete(given: Sequence[str], dialect: Dialect) -> list[str]:
    if dialect.has_row_names:
        given = ["row names", *given[1:]]
    return complete_names(given)
