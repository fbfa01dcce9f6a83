"""Reads CSV files block by block, with column types that fit all blocks."""

import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from tfbbb.data.column_names import check_column_names
from tfbbb.data.csv_faults import (
    CsvSource,
    check_content,
    check_encoding,
    check_rows,
    check_separator,
    read_header,
)
from tfbbb.data.csv_types import find_common_types
from tfbbb.data.pandas_index import RowNumbers, may_begin_with_index
from tfbbb.data.table_error import TableError

# No row may be longer than a block.
BLOCK_BYTES = 4 * 2**20
_MISSING = (
    *("", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A"),
    *("NaN", "nan", "-NaN", "-nan", "NULL", "null"),
)
_PARSING = pyarrow.csv.ParseOptions(newlines_in_values=True)
_CONVERSION = re.compile(r"In CSV column #(\d+):.*conversion error", re.DOTALL)


class TooNarrow(Exception):
    """A column type that fits the previous blocks does not fit this block."""


class CsvFile:
    """A CSV file, compressed or not, as record batches.

    Args:
        path: The file.
        compressed: Whether it is compressed with gzip.
        text_columns: Columns to read as text, even if their cells look like numbers.
    """

    def __init__(
        self,
        path: Path,
        *,
        compressed: bool,
        text_columns: Iterable[str] = (),
    ) -> None:
        self._source = CsvSource(path, compressed, BLOCK_BYTES)
        self._text_columns = frozenset(text_columns)
        # The remaining possible types of each column. None until the first conversion
        # error: until then Arrow infers the types from the first block.
        self._candidates: list[list[pa.DataType]] | None = None
        self._names: list[str] = []
        self._types: list[pa.DataType] = []

    def header(self) -> list[str]:
        """Returns the names of the columns, or an empty list if unreadable."""
        check_content(self._source)
        return read_header(self._source)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows in batches; the last batches may be empty.

        Raises:
            TooNarrow: A column type was too narrow. The next call uses a wider type;
                the caller must discard the batches so far.
            TableError: The file is not a table.
        """
        check_content(self._source)
        try:
            yield from self._check_batches(self._open_with_candidates())
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            if failed := _CONVERSION.search(str(error)):
                self._widen(int(failed[1]))
            check_encoding(self._source)
            check_rows(self._source)
            if "straddling" in str(error):
                raise TableError(
                    f"{self._source.path} has a row longer than {BLOCK_BYTES} bytes; "
                    "is a quote never closed?"
                ) from None
            raise

    def _open_with_candidates(self) -> pa.csv.CSVStreamingReader:
        known = self._candidates
        types: dict[str, pa.DataType] = {}
        if known is not None:
            types = {n: c[0] for n, c in zip(self._names, known, strict=True)}
        types |= dict.fromkeys(self._text_columns, pa.string())
        return self._open(types)

    def _open(self, types: dict[str, pa.DataType]) -> pa.csv.CSVStreamingReader:
        return pa.csv.open_csv(
            self._source.stream(),
            read_options=pa.csv.ReadOptions(block_size=self._source.longest),
            parse_options=_PARSING,
            convert_options=_conversion_options(types),
        )

    def _check_batches(
        self, reader: pa.csv.CSVStreamingReader
    ) -> Iterator[pa.RecordBatch]:
        self._names, self._types = reader.schema.names, reader.schema.types
        check_separator(self._source, self._names)
        numbers = RowNumbers() if may_begin_with_index(self._names) else None
        if numbers is None:
            self._check_names()
        if any(pa.types.is_binary(type_) for type_ in self._types):
            check_encoding(self._source)
        last = None
        for batch in reader:
            if numbers is not None and not numbers.add(batch.column(0)):
                self._check_names()
            last = batch if batch.num_rows else last
            yield batch
        if last is not None and _ends_inside_text(last):
            check_rows(self._source)

    def _check_names(self) -> None:
        check_column_names(self._names, where=f"{self._source.path}: ")

    def _widen(self, column: int) -> None:
        """Widens the type of a column that did not fit, unless the type is text.

        Raises:
            TooNarrow: The column has a wider type now.
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
        raise TooNarrow

    def _find_candidates(self) -> list[list[pa.DataType]]:
        """Finds the column types that fit every block, in one pass over the file."""
        seen: list[set[pa.DataType]] = [{type_} for type_ in self._types]
        for batch in self._open(dict.fromkeys(self._names, pa.string())):
            for place, types in enumerate(seen):
                if pa.string() not in types and batch.num_rows:
                    types.add(_infer_type(batch.column(place)))
        return [find_common_types(types) for types in seen]


def _conversion_options(types: dict[str, pa.DataType]) -> pa.csv.ConvertOptions:
    return pa.csv.ConvertOptions(
        # Also after a space, as in "1, NA": Arrow allows a space before numbers.
        null_values=[*_MISSING, *(f" {word}" for word in _MISSING)],
        strings_can_be_null=True,
        column_types=types,
    )


def _infer_type(texts: pa.Array) -> pa.DataType:
    """Returns the type that Arrow's CSV reader infers for the cells of one column."""
    file = io.BytesIO()
    pa.csv.write_csv(pa.record_batch({"a": texts}), file)
    size = max(file.tell(), 1)
    file.seek(0)
    table = pa.csv.read_csv(
        file,
        read_options=pa.csv.ReadOptions(block_size=size, use_threads=False),
        parse_options=_PARSING,
        convert_options=_conversion_options({}),
    )
    return table.schema.types[0]


def _ends_inside_text(batch: pa.RecordBatch) -> bool:
    """Whether the last cell holds a line break, as after an unclosed quote."""
    if not pa.types.is_string(batch.schema.types[-1]):
        return False
    return "\n" in (batch.column(batch.num_columns - 1)[-1].as_py() or "")
