"""Reads CSV files block by block, with column types that fit all blocks."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pyarrow.csv import CSVStreamingReader

from tfbbb.tables.blank_end import BlankEnd
from tfbbb.tables.cells import WITH_DECIMAL_COMMAS
from tfbbb.tables.column_names import (
    check_column_names,
    complete_names,
    describe_names,
)
from tfbbb.tables.content import check_content
from tfbbb.tables.csv_blocks import Blocks, CsvBlocks, UncertainRows, write_blocks
from tfbbb.tables.csv_faults import (
    check_quotes,
    find_line,
    read_header,
)
from tfbbb.tables.csv_rows import (
    RECENT,
    RegularRows,
    is_number,
    may_end_table,
    read_rows,
    regular_rows,
)
from tfbbb.tables.csv_source import Compression, CsvSource
from tfbbb.tables.csv_types import WRITTEN_MISSING_WORDS, find_common_types
from tfbbb.tables.decimal_mark import DecimalMark, MarkedColumns
from tfbbb.tables.dialect import Delimiter, Dialect
from tfbbb.tables.dialect_search import find_dialect, marked_columns
from tfbbb.tables.leading_zeros import (
    CHUNK_BYTES,
    PossibleCodes,
    check_no_codes,
    cut_chunks,
    find_codes,
)
from tfbbb.tables.pandas_index import RowNumbers, may_begin_with_index
from tfbbb.tables.table_error import NoRowsError, StartOver, TableError
from tfbbb.tables.text_encoding import check_encoding, find_other_encoding
from tfbbb.tables.two_letter_codes import TwoLetterCodes, keep_na

# No row may be longer than a block.
BLOCK_BYTES = 4 * 2**20
_Reader: TypeAlias = Blocks[Any] | CSVStreamingReader
_CONVERSION = re.compile(r"In CSV column #(\d+):.*conversion error", re.DOTALL)


class CsvFile:
    """A CSV file, compressed or not, as record batches."""

    def __init__(
        self,
        path: Path,
        *,
        compression: Compression | None,
        delimiter: Delimiter = ",",
        text_columns: Iterable[str] = (),
    ) -> None:
        self._source = CsvSource(path, compression, BLOCK_BYTES)
        self._preferred = delimiter
        self._text_columns = frozenset(text_columns)
        # Whether the file can be cut into blocks of whole rows.
        self._is_parallel = True
        # The columns of codes of two letters, of which NA may be one; None until all
        # rows have been read.
        self._with_na: frozenset[str] | None = None
        # Whether columns of codes with leading zeros have been looked for.
        self._knows_codes = False
        self._dialect: Dialect | None = None
        # Whether all rows have shown that the decimal mark is a point.
        self._has_points = False
        # The remaining possible types of each column. None until the first conversion
        # error: until then Arrow infers the types from the first block.
        self._candidates: list[list[pa.DataType]] | None = None
        # The names in the file, and those of the columns.
        self._given: list[str] = []
        self._names: list[str] = []
        self._types: list[pa.DataType] = []
        # Places of the columns without a name that have values.
        self._valued: set[int] = set()
        # Whether Arrow cannot parse the rows; then Python does.
        self._is_irregular = False
        self._rows: RegularRows | None = None
        self._remarks: tuple[str, ...] = ()

    @property
    def dialect(self) -> Dialect:
        """How the file writes its table, by the rows read so far."""
        dialect = self._parsed_dialect
        return replace(dialect, remarks=(*dialect.remarks, *self._remarks))

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
        given = read_header(self._source, self._parsed_dialect)
        return _complete(given, self._parsed_dialect)

    def line(self, row: int) -> int:
        """Returns the number of the line in which a row begins."""
        return find_line(self._source, self._parsed_dialect, row)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows in batches; the last batches may be empty."""
        try:
            yield from self._batches()
        except UncertainRows:
            self._is_parallel = False
            raise StartOver from None

    def _find_codes(self) -> None:
        """Adds columns of codes, such as 01569, to those that are text."""
        texts = self._open(dict.fromkeys(self._names, pa.string()))
        self._text_columns |= find_codes(texts)
        self._knows_codes = True
        raise StartOver

    def _batches(self) -> Iterator[pa.RecordBatch]:
        self._remarks = ()
        try:
            self._given = read_header(self._source, self._parsed_dialect)
            self._names = _complete(self._given, self._parsed_dialect)
            if not self._given:
                self._check_encoding()
                check_quotes(self._source, self._parsed_dialect)
                raise TableError(f"{self._source.path} is empty.")
            try:
                yield from self._check_batches(self._open_with_candidates())
            except PossibleCodes:
                self._find_codes()
        except (pa.ArrowInvalid, UnicodeDecodeError, csv.Error) as error:
            if "CSV parse error" in str(error):
                self._regularise()
            failed = _CONVERSION.search(str(error))
            # The following checks name the line of any other fault.
            with suppress(pa.ArrowInvalid):
                if failed and "UTF8" not in str(error):
                    self._widen(int(failed[1]))
            self._check_encoding()
            check_quotes(self._source, self._parsed_dialect)
            if not any(islice(read_rows(self._source, self._parsed_dialect), 1, 2)):
                raise NoRowsError(self._source.path) from None
            if "straddling" in str(error):
                raise TableError(
                    f"{self._source.path} has a row longer than {BLOCK_BYTES} bytes; "
                    "is a quote never closed?"
                ) from None
            self._regularise()
            raise

    def _regularise(self) -> None:
        """Reads the rows in Python, after Arrow has found them irregular."""
        if self._rows is None and not self._is_irregular:
            self._is_irregular = True
            self._candidates = None
            raise StartOver

    def _open_with_candidates(self) -> _Reader:
        known = self._candidates
        types: dict[str, pa.DataType] = {}
        if known is not None:
            types = {n: c[0] for n, c in zip(self._names, known, strict=True)}
        types |= dict.fromkeys(self._text_columns, pa.string())
        return self._open(types, looks_for_codes=not self._knows_codes)

    def _open(
        self, types: dict[str, pa.DataType], *, looks_for_codes: bool = False
    ) -> _Reader:
        """Opens the file with the given types of columns."""
        dialect = self._parsed_dialect
        conversion = _conversion_options(types, dialect, not self._with_na)
        names = self._names
        self._rows = None
        if self._is_irregular or not dialect.suits_arrow:
            self._rows = regular_rows(self._source, dialect, self._given)
            regular = Dialect(decimal_mark=dialect.decimal_mark, has_header=False)
            parse = partial(_parse_block, regular, conversion, names, looks_for_codes)
            blocks = write_blocks(self._rows, self._source.longest)
            return Blocks(blocks, parse)
        if self._is_parallel and dialect.encoding == "utf-8":
            parse = partial(_parse_block, dialect, conversion, names, looks_for_codes)
            try:
                return CsvBlocks(self._source, dialect.delimiter, parse)
            except UncertainRows:
                self._is_parallel = False
        if looks_for_codes:
            if dialect.encoding.startswith("utf-16"):
                raise PossibleCodes
            with self._source.open() as file:
                chunks = iter(partial(file.read, CHUNK_BYTES), b"")
                check_no_codes(chunks, dialect.delimiter)
        return pa.csv.open_csv(
            self._source.stream(),
            read_options=pa.csv.ReadOptions(
                block_size=self._source.longest,
                encoding=dialect.encoding,
                **_skip_header(dialect, names),
            ),
            parse_options=_parse_options(dialect),
            convert_options=conversion,
        )

    def _check_batches(self, reader: _Reader) -> Iterator[pa.RecordBatch]:
        self._types = reader.schema.types
        check_column_names(self._names, where=f"{self._source.path}: ")
        places = range(len(self._names))
        names = dict(zip(places, self._names, strict=True))
        unnamed = {place for place in places if not self._given[place].strip()}
        unnamed -= self._valued
        numbers: RowNumbers | None = None
        if may_begin_with_index(self._given) and 0 in unnamed:
            numbers, names[0] = RowNumbers(), ""
            unnamed.remove(0)
        for place in unnamed:
            del names[place]
        if any(pa.types.is_binary(type_) for type_ in self._types):
            self._check_encoding()
        marked = self._columns_with_other_mark()
        # The last batches, of `RECENT` rows together.
        last: list[pa.RecordBatch] = []
        end = BlankEnd()
        codes = None if self._with_na is not None else TwoLetterCodes()
        with_na = self._with_na or ()
        batches = (keep_na(batch, with_na) for batch in reader) if with_na else reader
        for batch in end.without(batches):
            columns = batch.columns
            valued = {p for p in unnamed if columns[p].null_count < batch.num_rows}
            if numbers is not None and not numbers.add(columns[0]):
                valued.add(0)
            if valued:
                self._valued |= valued
                raise StartOver
            self._check_repeated_header(batch)
            if marked is not None:
                marked.add(batch)
            if codes is not None:
                codes.add(batch)
            last.append(batch)
            while sum(each.num_rows for each in last[1:]) >= RECENT:
                del last[0]
            batch = batch.select([*names]).rename_columns([*names.values()])
            if self._parsed_dialect.decimal_mark == ",":
                batch = batch.replace_schema_metadata(WITH_DECIMAL_COMMAS)
            yield batch
        if any(batch.num_rows for batch in last):
            self._check_last_row(last)
        if marked is not None and marked.names:
            self._change_decimal_mark()
        if codes is not None:
            self._with_na = codes.names
            if self._with_na:
                raise StartOver
        start = int(numbers is not None)
        self._remarks = (
            *describe_names(self._given[start:], self._names[start:], unnamed),
            *end.describe(),
        )
        if self._rows is not None:
            self._remarks += self._rows.remarks

    def _check_repeated_header(self, batch: pa.RecordBatch) -> None:
        """Raises `StartOver` if Arrow read the names of the columns as a row."""
        if self._rows is not None or not self._parsed_dialect.has_header:
            return
        named = [place for place, name in enumerate(self._given) if name.strip()]
        texts = [p for p in named if pa.types.is_string(self._types[p])]
        others = {*named}.difference(texts)
        if not texts or not all(is_number(self._given[place]) for place in others):
            return
        same = pc.equal(batch.column(texts[0]), self._given[texts[0]])
        for row in batch.filter(same).to_pylist() if pc.any(same).as_py() else []:
            if all(str(row[self._names[p]]) == self._given[p] for p in named):
                self._regularise()

    def _check_last_row(self, batches: list[pa.RecordBatch]) -> None:
        """Checks that the last of some rows is not cut, and a row of the table."""
        table = pa.Table.from_batches(batches)
        first = max(table.num_rows - RECENT, 0)
        rows = [[*row.values()] for row in table.slice(first).to_pylist()]
        # A cell holds a line break after a quote that is never closed.
        if isinstance(rows[-1][-1], str) and "\n" in rows[-1][-1]:
            check_quotes(self._source, self._parsed_dialect)
        if self._rows is None and may_end_table(
            [[None if cell is None else str(cell) for cell in row] for row in rows]
        ):
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
            self._candidates = None
            raise StartOver from None

    def _columns_with_other_mark(self) -> MarkedColumns | None:
        # Commas that separate cells are no decimal commas.
        if self._parsed_dialect.delimiter == "," or self._has_points:
            return None
        other: DecimalMark = "," if self._parsed_dialect.decimal_mark == "." else "."
        return marked_columns(self._parsed_dialect, other, ignored=self._text_columns)

    def _change_decimal_mark(self) -> None:
        """Changes the decimal mark, once columns of text turn out to have another."""
        if self._parsed_dialect.decimal_mark == ",":
            self._dialect = replace(self._parsed_dialect, decimal_mark=".")
            self._has_points = True
        elif any(pa.types.is_floating(type_) for type_ in self._types):
            return
        else:
            self._dialect = replace(self._parsed_dialect, decimal_mark=",")
        self._candidates = None
        raise StartOver

    def _widen(self, column: int) -> None:
        """Widens the type of a column that did not fit, unless the type is text."""
        if self._candidates is None:
            if not self._names or self._names[column] in self._text_columns:
                return
            self._candidates = self._find_candidates()
        # A type that fits each block alone may not fit all blocks: a block of 0 and 1
        # may be boolean, a block with a 2 may not.
        elif len(self._candidates[column]) > 1:
            del self._candidates[column][0]
        else:
            return
        raise StartOver

    def _find_candidates(self) -> list[list[pa.DataType]]:
        """Finds the column types that fit every block, in one pass over the file."""
        seen: list[set[pa.DataType]] = [{type_} for type_ in self._types]
        for batch in self._open(dict.fromkeys(self._names, pa.string())):
            for place, types in enumerate(seen):
                if pa.string() not in types and batch.num_rows:
                    types.add(_infer_type(batch.column(place), self._parsed_dialect))
        return [find_common_types(types) for types in seen]


def _parse_block(
    dialect: Dialect,
    conversion: pa.csv.ConvertOptions,
    names: Sequence[str],
    looks_for_codes: bool,
    block: memoryview | bytes,
    schema: pa.Schema | None,
) -> pa.RecordBatch:
    """Parses whole rows; without the schema they begin with the header."""
    if looks_for_codes:
        check_no_codes(cut_chunks(block), dialect.delimiter)
    if schema is None:
        reading = pa.csv.ReadOptions(**_skip_header(dialect, names))
    else:
        reading = pa.csv.ReadOptions(column_names=schema.names)
        types = dict(zip(schema.names, schema.types, strict=True))
        nulls = conversion.strings_can_be_null
        conversion = _conversion_options(types, dialect, nulls)
    # One block, in the calling thread.
    reading.block_size = len(block) + 1
    reading.use_threads = False
    table = pa.csv.read_csv(
        pa.BufferReader(pa.py_buffer(block)),
        reading,
        _parse_options(dialect),
        conversion,
    )
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)


def _complete(given: Sequence[str], dialect: Dialect) -> list[str]:
    if dialect.has_row_names:
        given = ["row names", *given[1:]]
    return complete_names(given)


def _skip_header(dialect: Dialect, names: Sequence[str]) -> dict[str, Any]:
    """Returns the options that replace the header by other names."""
    return {
        "column_names": names,
        "skip_rows": dialect.header_line - 1,
        "skip_rows_after_names": int(dialect.has_header),
    }


def _parse_options(dialect: Dialect) -> pa.csv.ParseOptions:
    return pa.csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True)


def _conversion_options(
    types: dict[str, pa.DataType], dialect: Dialect, strings_can_be_null: bool = True
) -> pa.csv.ConvertOptions:
    return pa.csv.ConvertOptions(
        null_values=WRITTEN_MISSING_WORDS,
        strings_can_be_null=strings_can_be_null,
        column_types=types,
        decimal_point=dialect.decimal_mark,
    )


def _infer_type(texts: pa.Array, dialect: Dialect) -> pa.DataType:
    """Returns the type that Arrow's CSV reader infers for the cells of one column."""
    file = io.BytesIO()
    pa.csv.write_csv(pa.record_batch({"a": texts}), file)
    size = max(file.tell(), 1)
    file.seek(0)
    table = pa.csv.read_csv(
        file,
        read_options=pa.csv.ReadOptions(block_size=size, use_threads=False),
        parse_options=_parse_options(Dialect()),
        convert_options=_conversion_options({}, dialect),
    )
    return table.schema.types[0]
