"""Finds the delimiter, the decimal mark and the header line of a CSV file."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from tfbbb.tables.content import BEGINNING_BYTES
from tfbbb.tables.csv_source import CsvSource
from tfbbb.tables.csv_types import MISSING_WORDS
from tfbbb.tables.decimal_mark import DecimalMark, MarkedColumns
from tfbbb.tables.dialect import (
    DELIMITERS,
    Delimiter,
    Dialect,
)
from tfbbb.tables.pandas_index import may_begin_with_index
from tfbbb.tables.text_encoding import Encoding, find_encoding

# Most lines above the header that are not blank.
_MOST_TITLES = 20
_NUMBER = re.compile(r" *[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)? *")
# The first line that Excel reads, and writes for other programs, as "sep=;".
_DECLARATION = re.compile(r'"?sep=([,;\t|])"?[\r\n]+')


@dataclass(frozen=True)
class _Row:
    """The cells of a row that is not blank, and the number of its first line."""

    line: int
    cells: list[str]

    @property
    def is_title(self) -> bool:
        """Whether the row may be a title or a comment above the header."""
        first, *others = self.cells
        return first.startswith("#") or not any(cell.strip() for cell in others)


@dataclass(frozen=True)
class _Reading:
    """What a file holds if a delimiter separates its cells.

    Attributes:
        delimiter: The delimiter.
        rows: The rows, with the header first.
    """

    delimiter: Delimiter
    rows: list[_Row]

    @property
    def width(self) -> int:
        """The number of cells of the header."""
        return len(self.rows[0].cells)

    @cached_property
    def share(self) -> float:
        """The share of the rows with as many cells as the header."""
        return sum(len(row.cells) == self.width for row in self.rows) / len(self.rows)

    def columns(self) -> list[list[str]]:
        """Returns the cells below the header, of the rows as long as the header."""
        rows = [row.cells for row in self.rows[1:] if len(row.cells) == self.width]
        return [[row[place] for row in rows] for place in range(self.width)]


def find_dialect(
    source: CsvSource,
    *,
    preferred: Delimiter = ",",
    encoding: Encoding | None = None,
) -> Dialect:
    """Returns the dialect by the beginning of a file.

    The delimiter is the preferred one if it gives all rows as many cells as the header,
    at least two. Otherwise it is one that does so, and then one that does so for the
    most rows. The header is the first row that is not a title.

    Args:
        source: The file.
        preferred: The delimiter to choose if several are possible.
        encoding: The encoding, if the beginning of the file does not show it.

    Raises:
        TableError: The file is text in an unknown encoding.
    """
    encoding = encoding or find_encoding(source)
    codec = "utf-8-sig" if encoding == "utf-8" else encoding
    beginning = source.beginning()
    text = beginning.decode(codec, errors="ignore")
    is_whole = len(beginning) < BEGINNING_BYTES
    declared = _DECLARATION.match(text)
    delimiters: list[Delimiter] = [preferred]
    delimiters += [other for other in DELIMITERS if other != preferred]
    if declared:
        delimiters = [each for each in DELIMITERS if each == declared[1]]
    readings = []
    for delimiter in delimiters:
        rows = list(_rows(text, delimiter, is_whole=is_whole))
        reading = _read(rows[1:] if declared else rows, delimiter)
        readings += [] if reading is None else [reading]
    if not readings:
        rows = list(_rows(text, delimiters[0], is_whole=is_whole))
        return Dialect(
            encoding,
            delimiters[0],
            header_line=2 if declared else 1,
            doubts=tuple(_describe_spaces(rows)),
        )
    best = _choose(readings, delimiters[0])
    return Dialect(
        encoding,
        best.delimiter,
        _decimal_mark(best),
        best.rows[0].line,
        (*_describe_others(best, readings), *_describe_header(best)),
    )


def marked_columns(
    dialect: Dialect, mark: DecimalMark, *, ignored: Iterable[str] = ()
) -> MarkedColumns:
    """Returns an object that finds the columns of a file with a decimal mark."""
    # A file separated by semicolons is written where commas are decimal marks.
    grouped = mark == "," and dialect.delimiter == ";"
    return MarkedColumns(mark, grouped=grouped, ignored=set(ignored))


def _rows(text: str, delimiter: Delimiter, *, is_whole: bool) -> Iterator[_Row]:
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    line = 1
    first = last = None
    try:
        for cells in lines:
            if last is not None:
                yield last
            last = _Row(line, cells) if cells else None
            first = first or last
            line = lines.line_num + 1
    except csv.Error:
        # The reader of the whole file names the line.
        return
    # The beginning of the file may cut its last row.
    if last is not None and (is_whole or last is first):
        yield last


def _read(rows: Sequence[_Row], delimiter: Delimiter) -> _Reading | None:
    """Returns the best reading, or None if no row can be a header of two columns."""
    best: _Reading | None = None
    for start, row in enumerate(rows[: _MOST_TITLES + 1]):
        reading = _Reading(delimiter, list(rows[start:]))
        if start and _may_follow_titles(reading):
            best = max(best or reading, reading, key=_share)
        elif not start and len(row.cells) > 1 and not _is_unnamed(row.cells):
            best = reading
        if (best is not None and best.share == 1) or not row.is_title:
            break
    if best is None and rows and len(rows[0].cells) > 1:
        return _Reading(delimiter, list(rows))
    return best


def _share(reading: _Reading) -> float:
    return reading.share


def _is_unnamed(cells: list[str]) -> bool:
    """Whether a first row has empty cells, as a title has."""
    return not all(cell.strip() for cell in cells) and not may_begin_with_index(cells)


def _may_follow_titles(reading: _Reading) -> bool:
    """Whether a row below titles is certainly a header.

    It has distinct names that are not numbers, above a column of numbers. Otherwise a
    column of texts with commas would be taken for a title with a table below.
    """
    names = reading.rows[0].cells
    return (
        reading.width > 1
        and len(reading.rows) > 1
        and all(name.strip() and not _NUMBER.fullmatch(name) for name in names)
        and len(set(names)) == len(names)
        and any(_is_numeric(column) for column in reading.columns())
    )


def _is_numeric(cells: Sequence[str]) -> bool:
    known = [cell for cell in cells if not _is_missing(cell)]
    return bool(known) and all(_NUMBER.fullmatch(cell) for cell in known)


def _is_missing(cell: str) -> bool:
    return cell.strip() in MISSING_WORDS


def _choose(readings: Sequence[_Reading], preferred: Delimiter) -> _Reading:
    # `max` returns the first of equals, which is the preferred one.
    return max(
        readings,
        key=lambda one: (
            one.share == 1 and one.delimiter == preferred,
            one.share,
            one.width,
        ),
    )


def _decimal_mark(reading: _Reading) -> DecimalMark:
    """Returns a comma if columns have decimal commas, and none has decimal points."""
    # Commas that separate cells are no decimal commas.
    if reading.delimiter == ",":
        return "."
    texts = [
        pa.array([None if _is_missing(cell) else cell for cell in column], pa.string())
        for column in reading.columns()
    ]
    batch = pa.record_batch(texts, names=[str(place) for place in range(len(texts))])
    dialect = Dialect(delimiter=reading.delimiter)
    commas, points = marked_columns(dialect, ","), marked_columns(dialect, ".")
    commas.add(batch)
    points.add(batch)
    return "," if commas.names and not points.names else "."


def _describe_others(best: _Reading, readings: Sequence[_Reading]) -> Iterator[str]:
    for other in readings:
        if other is not best and other.share == 1 and other.width >= best.width:
            yield (
                f"It could also be separated by {DELIMITERS[other.delimiter]}: quote "
                "the cells that hold a delimiter."
            )


def _describe_spaces(rows: Sequence[_Row]) -> Iterator[str]:
    """Describes a single column whose rows have as many words as the header."""
    words = {len(row.cells[0].split()) for row in rows if len(row.cells) == 1}
    if len(rows) > 1 and len(words) == 1 and words != {1}:
        yield (
            "It has a single column: if spaces separate the cells, separate them with "
            "commas or tabs."
        )


def _describe_header(best: _Reading) -> Iterator[str]:
    numeric = [
        name
        for name, column in zip(best.rows[0].cells, best.columns(), strict=True)
        if _is_numeric(column)
    ]
    if numeric and all(_NUMBER.fullmatch(name) for name in numeric):
        yield (
            f"The names of the columns, such as {numeric[0]!r}, look like values: if "
            "the file has no header, add a line with the names of the columns."
        )
