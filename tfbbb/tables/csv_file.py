"""Reads CSV files block by block, with column types that fit all blocks."""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
from pyarrow.csv import CSVStreamingReader

from tfbbb.tables.column_names import check_column_names
from tfbbb.tables.csv_blocks import CsvBlocks, UncertainRows
from tfbbb.tables.csv_faults import (
    check_content,
    check_rows,
    find_line,
    read_header,
)
from tfbbb.tables.csv_source import Compression, CsvSource
from tfbbb.tables.csv_types import MISSING_WORDS, find_common_types
from tfbbb.tables.decimal_mark import DecimalMark, MarkedColumns
from tfbbb.tables.dialect import Delimiter, Dialect
from tfbbb.tables.dialect_search import find_dialect, marked_columns
from tfbbb.tables.leading_zeros import find_codes, may_have_codes
from tfbbb.tables.pandas_index import RowNumbers, may_begin_with_index
from tfbbb.tables.table_error import StartOver, TableError
from tfbbb.tables.text_encoding import check_encoding, find_single_byte_encoding

# No row may be longer than a block.
BLOCK_BYTES = 4 * 2**20
_CONVERSION = re.compile(r"In CSV column #(\d+):.*conversion error", re.DOTALL)


class CsvFile:
    """A CSV file, compressed or not, as record batches.

    Args:
        path: The file.
        compression: How it is compressed, or None.
        delimiter: The delimiter to prefer if the file allows several.
        text_columns: Columns to read as text, even if their cells look like numbers.
    """

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
        # Whether columns of codes with leading zeros have been looked for.
        self._knows_codes = False
        self._dialect: Dialect | None = None
        # Whether all rows have shown that the decimal mark is a point.
        self._has_points = False
        # The remaining possible types of each column. None until the first conversion
        # error: until then Arrow infers the types from the first block.
        self._candidates: list[list[pa.DataType]] | None = None
        self._names: list[str] = []
        self._types: list[pa.DataType] = []

    @property
    def dialect(self) -> Dialect:
        """How the file writes its table, by the rows read so far."""
        if self._dialect is None:
            check_content(self._source)
            self._dialect = find_dialect(self._source, preferred=self._preferred)
        return self._dialect

    def header(self) -> list[str]:
        """Returns the names of the columns, or an empty list if unreadable."""
        header = read_header(self._source, self.dialect)
        return header[: _count_named(header)]

    def line(self, row: int) -> int:
        """Returns the number of the line in which a row begins.

        Args:
            row: Index of the row; -1 for the header.
        """
        return find_line(self._source, self.dialect, row)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows in batches; the last batches may be empty.

        Raises:
            StartOver: The rows so far were misread. The next call reads them otherwise;
                the caller must discard the batches so far.
            TableError: The file is not a table.
        """
        try:
            yield from self._batches()
        except UncertainRows:
            self._is_parallel = False
            raise StartOver from None

    def _find_codes(self) -> None:
        """Adds columns of codes, such as 01569, to those that are text."""
        self._knows_codes = True
        with self._source.open() as file:
            is_possible = may_have_codes(file, self.dialect.delimiter)
        if is_possible or self.dialect.encoding.startswith("utf-16"):
            names = read_header(self._source, self.dialect)
            texts = self._open(dict.fromkeys(names, pa.string()))
            self._text_columns |= find_codes(texts)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            if not self._knows_codes:
                self._find_codes()
            yield from self._check_batches(self._open_with_candidates())
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            failed = _CONVERSION.search(str(error))
            # The following checks name the line of any other fault.
            with suppress(pa.ArrowInvalid):
                if failed and "UTF8" not in str(error):
                    self._widen(int(failed[1]))
            self._check_encoding()
            check_rows(self._source, self.dialect)
            if "straddling" in str(error):
                raise TableError(
                    f"{self._source.path} has a row longer than {BLOCK_BYTES} bytes; "
                    "is a quote never closed?"
                ) from None
            raise

    def _open_with_candidates(self) -> CsvBlocks | CSVStreamingReader:
        known = self._candidates
        types: dict[str, pa.DataType] = {}
        if known is not None:
            types = {n: c[0] for n, c in zip(self._names, known, strict=True)}
        types |= dict.fromkeys(self._text_columns, pa.string())
        return self._open(types)

    def _open(self, types: dict[str, pa.DataType]) -> CsvBlocks | CSVStreamingReader:
        dialect = self.dialect
        conversion = _conversion_options(types, dialect)
        if self._is_parallel and dialect.encoding == "utf-8":
            try:
                return CsvBlocks(
                    self._source,
                    dialect.delimiter,
                    lambda block, schema: _parse_block(
                        block, schema, dialect, conversion
                    ),
                )
            except UncertainRows:
                self._is_parallel = False
        return pa.csv.open_csv(
            self._source.stream(),
            read_options=pa.csv.ReadOptions(
                block_size=self._source.longest,
                encoding=dialect.encoding,
                skip_rows=dialect.header_line - 1,
            ),
            parse_options=_parse_options(dialect),
            convert_options=conversion,
        )

    def _check_batches(
        self, reader: CsvBlocks | CSVStreamingReader
    ) -> Iterator[pa.RecordBatch]:
        self._names, self._types = reader.schema.names, reader.schema.types
        # Rows may end with a delimiter, so that an empty column follows the last.
        width = _count_named(self._names)
        may_have_index = may_begin_with_index(self._names[:width])
        numbers = RowNumbers() if may_have_index else None
        if numbers is None:
            self._check_names(width)
        if any(pa.types.is_binary(type_) for type_ in self._types):
            self._check_encoding()
        marked = self._columns_with_other_mark()
        last = None
        for batch in reader:
            if numbers is not None and not numbers.add(batch.column(0)):
                self._check_names(width)
            if any(len(c) > c.null_count for c in batch.columns[width:]):
                self._check_names()
            batch = batch.select(range(width))
            if marked is not None:
                marked.add(batch)
            last = batch if batch.num_rows else last
            yield batch
        if last is not None and _ends_inside_text(last):
            check_rows(self._source, self.dialect)
        if marked is not None and marked.names:
            self._change_decimal_mark()

    def _check_encoding(self) -> None:
        """Raises a `TableError` if the text is in an unknown encoding.

        Raises:
            StartOver: The encoding is not UTF-8, but another known one.
        """
        dialect = self.dialect
        try:
            check_encoding(self._source, dialect.encoding)
        except TableError:
            if dialect.encoding != "utf-8":
                raise
            self._dialect = find_dialect(
                self._source,
                preferred=self._preferred,
                encoding=find_single_byte_encoding(self._source),
            )
            self._candidates = None
            raise StartOver from None

    def _columns_with_other_mark(self) -> MarkedColumns | None:
        # Commas that separate cells are no decimal commas.
        if self.dialect.delimiter == "," or self._has_points:
            return None
        other: DecimalMark = "," if self.dialect.decimal_mark == "." else "."
        return marked_columns(self.dialect, other, ignored=self._text_columns)

    def _change_decimal_mark(self) -> None:
        """Changes the decimal mark, after columns of text turned out to have another.

        Raises:
            StartOver: The decimal mark has changed.
        """
        if self.dialect.decimal_mark == ",":
            self._dialect = replace(self.dialect, decimal_mark=".")
            self._has_points = True
        elif any(pa.types.is_floating(type_) for type_ in self._types):
            return
        else:
            self._dialect = replace(self.dialect, decimal_mark=",")
        self._candidates = None
        raise StartOver

    def _check_names(self, width: int | None = None) -> None:
        try:
            check_column_names(self._names[:width], where=f"{self._source.path}: ")
        except TableError as error:
            # The names of a file without a header are values, which may be repeated.
            doubts = self.dialect.doubts
            raise TableError(" ".join([str(error), *doubts])) from None

    def _widen(self, column: int) -> None:
        """Widens the type of a column that did not fit, unless the type is text.

        Raises:
            StartOver: The column has a wider type now.
        """
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
                    types.add(_infer_type(batch.column(place), self.dialect))
        return [find_common_types(types) for types in seen]


def _parse_block(
    block: memoryview,
    schema: pa.Schema | None,
    dialect: Dialect,
    conversion: pa.csv.ConvertOptions,
) -> pa.RecordBatch:
    """Parses whole rows; without the schema they begin with the header."""
    if schema is None:
        reading = pa.csv.ReadOptions(skip_rows=dialect.header_line - 1)
    else:
        reading = pa.csv.ReadOptions(column_names=schema.names)
        types = dict(zip(schema.names, schema.types, strict=True))
        conversion = _conversion_options(types, dialect)
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


def _parse_options(dialect: Dialect) -> pa.csv.ParseOptions:
    return pa.csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True)


def _conversion_options(
    types: dict[str, pa.DataType], dialect: Dialect
) -> pa.csv.ConvertOptions:
    return pa.csv.ConvertOptions(
        # Also after a space, as in "1, NA": Arrow allows a space before numbers.
        null_values=[*MISSING_WORDS, *(f" {word}" for word in MISSING_WORDS)],
        strings_can_be_null=True,
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


def _count_named(names: Sequence[str]) -> int:
    """Returns the number of columns up to the last one with a name, at least one."""
    named = [place for place, name in enumerate(names) if name.strip()]
    return max(named, default=0) + 1


def _ends_inside_text(batch: pa.RecordBatch) -> bool:
    """Whether the last cell holds a line break, as after an unclosed quote."""
    if not pa.types.is_string(batch.schema.types[-1]):
        return False
    return "\n" in (batch.column(batch.num_columns - 1)[-1].as_py() or "")
