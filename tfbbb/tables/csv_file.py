"""Reads CSV files block by block, as columns of text."""

import csv
from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
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
    MOST_BELOW,
    RECENT,
    RegularRows,
    Row,
    is_number,
    may_end_table,
    read_rows,
)
from tfbbb.tables.dialect import Delimiter, Dialect
from tfbbb.tables.dialect_search import find_dialect
from tfbbb.tables.format import check_content
from tfbbb.tables.notations.missing_marks import MISSING_WORDS, NA
from tfbbb.tables.plain_values import WITH_DECIMAL_COMMAS, WITHOUT_TYPES
from tfbbb.tables.table_error import TableError
from tfbbb.tables.text_encoding import Compression, CsvSource, check_encoding

# No line may be longer than a block.
BLOCK_BYTES = 4 * 2**20
# Arrow reads several blocks ahead.
_STREAM_BYTES, _CELLS_PER_BATCH = 2 * 2**20, 2**16
# Also after a space, as in "1, NaN".
_NULL = [space + word for word in MISSING_WORDS if word != NA for space in ("", " ")]


_INDEX = (
    "The first column has no name and counts the rows, as an index of pandas or R "
    "does, and is left out: give it a name to keep it."
)


class TextFile:
    """A file of texts as record batches, of which columns may lack names.

    `given` has the names in the file, `names` those of the columns. After the last
    batch, `remarks` has sentences on what was named or left out.
    """

    noun = "line"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.remarks: tuple[str, ...] = ()

    @property
    def metadata(self) -> dict[bytes, bytes]:
        return WITHOUT_TYPES

    @property
    def dialect(self) -> Dialect:
        """How the file writes its table, by the rows read so far."""
        found = self.found
        return replace(found, remarks=(*found.remarks, *self.remarks))

    @property
    @abstractmethod
    def found(self) -> Dialect:
        """How the beginning of the file writes its table."""

    @property
    @abstractmethod
    def given(self) -> list[str]: ...

    @property
    def names(self) -> list[str]:
        return complete_names(self.given)

    @abstractmethod
    def read(self) -> Iterator[Row]:
        """Yields the rows from the header on."""

    def rows(self) -> RegularRows:
        """Returns the rows, with sentences on what was filled or left out."""
        where = str(self.path)
        return RegularRows(
            self.read, self.found, self.given, where=where, noun=self.noun
        )

    def texts(self, rows: RegularRows) -> Iterator[pa.RecordBatch]:
        """Yields the cells of the rows, a column for each name."""
        return self.parse(rows)

    def parse(self, rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
        """Yields regular rows in batches."""
        names, cells = self.names, (row.cells for row in rows)
        missing, none = pa.array(_NULL), pa.scalar(None, pa.string())
        while some := [*islice(cells, max(1, _CELLS_PER_BATCH // len(names)))]:
            columns = (
                pa.array(column, pa.string()) for column in zip(*some, strict=True)
            )
            yield pa.RecordBatch.from_arrays(
                [pc.if_else(pc.is_in(x, missing), none, x) for x in columns], names
            )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows in batches; the last batches may be empty."""
        check_column_names(self.names, where=f"{self.path}: ")
        kept, left_out = self._kept
        if not kept:
            raise TableError(f"{self.path} is empty.")
        rows = self.rows()
        for batch in self.texts(rows):
            batch = batch.select([*kept]).rename_columns([*kept.values()])
            yield batch.replace_schema_metadata(self.metadata)
        start = int(0 not in kept and 0 not in left_out)
        named = describe_names(self.given[start:], self.names[start:], left_out)
        self.remarks = (*[_INDEX][:start], *named, *rows.remarks)

    @cached_property
    def _kept(self) -> tuple[dict[int, str], set[int]]:
        """The columns by place, and those that have neither a name nor a value."""
        kept, given = dict(enumerate(self.names)), self.given
        empty = {place for place in kept if not given[place].strip()}
        index: list[np.ndarray | None] = []
        for batch in self.texts(self.rows()) if empty else ():
            if may_begin_with_index(given):
                index.append(_row_numbers(batch.column(0)))
            empty -= {p for p in empty if batch.column(p).null_count < batch.num_rows}
        numbers = [part for part in index if part is not None]
        if numbers and len(numbers) == len(index):
            ordered = np.sort(np.concatenate(numbers))
            if (np.diff(ordered) > 0).all():
                del kept[0]
        for place in empty:
            del kept[place]
        return kept, empty


class CsvFile(TextFile):
    """A CSV file, compressed or not, as record batches of texts."""

    def __init__(
        self, path: Path, *, compression: Compression | None, delimiter: Delimiter = ","
    ) -> None:
        super().__init__(path)
        self._source = CsvSource(path, compression, BLOCK_BYTES)
        self._preferred = delimiter

    @cached_property
    def found(self) -> Dialect:
        is_named_so = self._source.compression is None
        beginning = self._source.beginning()
        check_content(self.path, beginning, "csv", is_named_so=is_named_so)
        return find_dialect(self._source, preferred=self._preferred)

    @property
    def metadata(self) -> dict[bytes, bytes]:
        has_commas = self.found.decimal_mark == ","
        return WITHOUT_TYPES | (WITH_DECIMAL_COMMAS if has_commas else {})

    @cached_property
    def given(self) -> list[str]:
        """The cells of the header, or an empty list if it cannot be read."""
        source, dialect = self._source, self.found
        number = 1 if dialect.units_line is None else 2
        try:
            first, *others = islice(read_rows(source, dialect), number)
        except (csv.Error, UnicodeDecodeError, ValueError):
            return []
        names = first.cells
        if not dialect.has_header:
            return [""] * len(names)
        if others and len(others[0].cells) == len(names):
            names = fill_names(names, others[0].cells)
        return ["", *names] if dialect.has_row_names else names

    @property
    def names(self) -> list[str]:
        has_row_names = self.found.has_row_names
        return complete_names(
            ["row names", *self.given[1:]] if has_row_names else self.given
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows in batches; the last batches may be empty."""
        try:
            yield from super().batches() if self.given else ()
        except (pa.ArrowInvalid, UnicodeDecodeError, csv.Error):
            self._explain()
            raise
        if not self.given:
            self._explain()
            raise TableError(f"{self.path} is empty.")

    def _explain(self) -> None:
        """Raises a `TableError` for a wrong encoding and for an unclosed quote."""
        dialect = self.found
        check_encoding(self._source, dialect.encoding, is_damaged=dialect.is_damaged)
        self._check_quotes()

    def _check_quotes(self) -> None:
        """Raises a `TableError` that names the line of a quote that is never closed."""
        rows = read_rows(self._source, self.found, strict=True)
        try:
            deque(rows, maxlen=0)
        except csv.Error as error:
            raise TableError(f"{self.path}: {error}.") from None

    def read(self) -> Iterator[Row]:
        return read_rows(self._source, self.found)

    def texts(self, rows: RegularRows) -> Iterator[pa.RecordBatch]:
        """Yields what Arrow reads, and from irregular rows on what Python does."""
        # The last batches, in which the table may end.
        held: list[pa.RecordBatch] = []
        done, is_regular = 0, self.found.suits_arrow
        try:
            for batch in self._stream() if is_regular else ():
                if not batch.num_rows:
                    continue
                held.append(batch)
                if self._repeats_header(batch):
                    is_regular = False
                    break
                is_blank = not any(column[-1].is_valid for column in batch.columns)
                while not is_blank and sum(map(len, held[1:])) >= RECENT + MOST_BELOW:
                    done += len(held[0])
                    yield held.pop(0)
        except pa.ArrowInvalid:
            is_regular = False
        if is_regular and not _may_end_table(held):
            yield from held
            return
        last: pa.RecordBatch | None = None
        for last in self.parse(islice(rows, done, None)):
            yield last
        # A cell holds a line break after a quote that is never closed.
        if last is not None and _has_break(last.column(-1)[-1].as_py()):
            self._check_quotes()

    def _stream(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows that Arrow parses."""
        dialect, names = self.found, self.names
        with self._source.open_as_utf8(dialect.encoding) as file:
            yield from pa.csv.open_csv(
                file,
                pa.csv.ReadOptions(
                    column_names=names,
                    skip_rows=dialect.header_line - 1,
                    skip_rows_after_names=int(dialect.has_header),
                    block_size=min(self._source.longest, _STREAM_BYTES),
                ),
                pa.csv.ParseOptions(
                    delimiter=dialect.delimiter, newlines_in_values=True
                ),
                pa.csv.ConvertOptions(
                    null_values=_NULL,
                    strings_can_be_null=True,
                    column_types=dict.fromkeys(names, pa.string()),
                ),
            )

    def _repeats_header(self, batch: pa.RecordBatch) -> bool:
        """Whether a row has the names of the columns."""
        columns, given = batch.columns, self.given
        named = [place for place, name in enumerate(given) if name.strip()]
        if all(is_number(given[place]) for place in named):
            return False
        same = pc.equal(columns[named[0]], given[named[0]])
        rows = batch.filter(same) if pc.any(same).as_py() else batch.slice(0, 0)
        return any(
            all(row[place].as_py() == given[place] for place in named)
            for row in zip(*rows.columns, strict=True)
        )


def _may_end_table(batches: Sequence[pa.RecordBatch]) -> bool:
    """Whether the last of some rows is cut, or may be no row of the table."""
    if not batches:
        return False
    table = pa.Table.from_batches(batches)
    first = max(table.num_rows - RECENT, 0)
    rows = [[*row.values()] for row in table.slice(first).to_pylist()]
    return _has_break(rows[-1][-1]) or may_end_table(rows)


def _has_break(cell: str | None) -> bool:
    return not {"\n", "\r"}.isdisjoint(cell or "")


def _row_numbers(texts: pa.Array) -> np.ndarray | None:
    """Returns texts as the row numbers of a frame; None if they cannot be these."""
    try:
        numbers: np.ndarray = texts.drop_null().cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    return None if texts.null_count or (numbers < 0).any() else numbers
