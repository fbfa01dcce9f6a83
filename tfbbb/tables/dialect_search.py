"""Finds the delimiter, the decimal mark and the header line of a CSV file."""

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from tfbbb.tables.content import BEGINNING_BYTES
from tfbbb.tables.csv_rows import Row, is_missing, is_number, parse_rows
from tfbbb.tables.csv_source import CsvSource, decode
from tfbbb.tables.decimal_mark import DecimalMark, MarkedColumns
from tfbbb.tables.dialect import (
    DELIMITERS,
    Delimiter,
    Dialect,
)
from tfbbb.tables.pandas_index import may_begin_with_index
from tfbbb.tables.text_encoding import FoundEncoding, find_encoding

# Most lines above the header that are not blank.
_MOST_TITLES = 20
# The share that is most.
_MOSTLY = 0.9
# Fewest rows of texts that show a first row to be no header.
_FEWEST_TEXTS = 10
_FIRST_YEAR = 1000
# The delimiters that are not blank.
_MARKS = [delimiter for delimiter in DELIMITERS if delimiter != " "]
_SINGLE = re.compile(r" *'.*' *", re.DOTALL)
_UNIT = re.compile(r"[^\W\d]{1,2}[\w/²³°]{0,4}|[%°$€£]\w?")
# The first line that Excel reads, and writes for other programs, as "sep=;".
_DECLARATION = re.compile(r'"?sep=([,;\t|])"?[\r\n]+')


@dataclass(frozen=True)
class _Reading:
    """What a file holds if it is parsed by a dialect.

    Attributes:
        dialect: The delimiter and the quotes.
        rows: The rows, with the header first.
    """

    dialect: Dialect
    rows: list[Row]

    @property
    def header(self) -> list[str]:
        """The cells of the header."""
        return self.rows[0].cells

    @cached_property
    def has_row_names(self) -> bool:
        """Whether the rows begin with a distinct name that the header lacks.

        So R writes a table.
        """
        longer = [
            row.cells for row in self.rows[1:] if len(row.cells) == len(self.header) + 1
        ]
        names = [cells[0].strip() for cells in longer]
        return (
            len(longer) > _MOSTLY * (len(self.rows) - 1)
            and any(cells[-1].strip() for cells in longer)
            and len({*names, ""}) == len(names) + 1
            and all(name.strip() for name in self.header)
        )

    @property
    def width(self) -> int:
        """The number of cells of the rows."""
        return len(self.header) + self.has_row_names

    @cached_property
    def share(self) -> float:
        """The share of the rows with as many cells as the header."""
        return sum(map(self._fits, self.rows)) / len(self.rows)

    def _fits(self, row: Row) -> bool:
        if row is self.rows[0]:
            return True
        if len(row.cells) > self.width:
            return not any(cell.strip() for cell in row.cells[self.width :])
        return len(row.cells) == self.width

    @cached_property
    def columns(self) -> list[list[str]]:
        """The cells below the header, of the rows as long as the header."""
        rows = [row.cells for row in self.rows[1:] if self._fits(row)]
        columns = [[row[place] for row in rows] for place in range(self.width)]
        return columns[1:] if self.has_row_names else columns

    @cached_property
    def numeric(self) -> list[int]:
        """The places of the columns that hold numbers below their first cell."""
        return [
            place
            for place, column in enumerate(self.columns)
            if _is_numeric(column) or (len(column) > 2 and _is_numeric(column[1:]))
        ]


def find_dialect(
    source: CsvSource,
    *,
    preferred: Delimiter = ",",
    encoding: FoundEncoding | None = None,
) -> Dialect:
    """Returns the dialect by the beginning of a file.

    The delimiter is the preferred one if it gives all rows as many cells as the header,
    at least two. Otherwise it is one that does so, and then one that does so for the
    most rows. Spaces separate cells if no other delimiter does so. The header is the
    first row that is not a title.

    Args:
        source: The file.
        preferred: The delimiter to choose if several are possible.
        encoding: The encoding, if the beginning of the file does not show it.

    Raises:
        TableError: The file is text in an unknown encoding.
    """
    found = encoding or find_encoding(source)
    beginning = source.beginning()
    text = decode(beginning, found.encoding, is_damaged=found.is_damaged)
    is_whole = len(beginning) < BEGINNING_BYTES
    declared = _DECLARATION.match(text)
    delimiters: list[Delimiter] = [preferred]
    delimiters += [other for other in _MARKS if other != preferred]
    if declared:
        delimiters = [each for each in _MARKS if each == declared[1]]
    readings = []
    for delimiter in delimiters:
        tried = [
            reading
            for quotes in _quotes(text, delimiter)
            if (reading := _read(text, quotes, is_whole, bool(declared))) is not None
        ]
        readings += tried[:1] if not tried else [max(tried, key=_rank_quotes)]
    spaces = _read(text, Dialect(delimiter=" "), is_whole, False)
    if spaces and not declared and _has_spaces(spaces, readings):
        readings = [spaces]
    if not readings:
        rows = list(_rows(text, Dialect(delimiter=delimiters[0]), is_whole))
        rows = rows[1:] if declared else rows
        reading = _Reading(Dialect(delimiter=delimiters[0]), rows)
        return replace(
            reading.dialect,
            encoding=found.encoding,
            is_damaged=found.is_damaged,
            doubts=found.doubts,
            header_line=rows[0].line if rows else 1,
            decimal_mark=_decimal_mark(reading) if rows else ".",
        )
    best = _choose(readings, delimiters[0])
    has_header = not _lacks_header(best)
    return replace(
        best.dialect,
        encoding=found.encoding,
        is_damaged=found.is_damaged,
        decimal_mark=_decimal_mark(best),
        header_line=best.rows[0].line,
        has_header=has_header,
        has_row_names=best.has_row_names and has_header,
        units_line=_units_line(best) if has_header else None,
        doubts=(
            *found.doubts,
            *_describe_others(best, readings),
            *_describe_header(best, has_header),
        ),
        remarks=tuple(_describe_structure(best, has_header)),
    )


def marked_columns(
    dialect: Dialect, mark: DecimalMark, *, ignored: Iterable[str] = ()
) -> MarkedColumns:
    """Returns an object that finds the columns of a file with a decimal mark."""
    # A file separated by semicolons is written where commas are decimal marks.
    grouped = mark == "," and dialect.delimiter == ";"
    return MarkedColumns(mark, grouped=grouped, ignored=set(ignored))


def _rows(text: str, dialect: Dialect, is_whole: bool) -> Iterator[Row]:
    first = last = None
    try:
        for row in parse_rows(io.StringIO(text, newline=""), dialect):
            if last is not None:
                yield last
            first, last = first or row, row
    except csv.Error:
        # The reader of the whole file names the line.
        return
    # The beginning of the file may cut its last row.
    if last is not None and (is_whole or last is first):
        yield last


def _quotes(text: str, delimiter: Delimiter) -> Iterator[Dialect]:
    """Yields the dialects of cells in double or single quotes, with escaped quotes."""
    yield Dialect(delimiter=delimiter)
    if re.search(rf"(^|{re.escape(delimiter)}) *'", text, re.MULTILINE):
        yield Dialect(delimiter=delimiter, quote="'")
    if _has_escaped_quotes(text, delimiter):
        yield Dialect(delimiter=delimiter, escape="\\")


def _has_escaped_quotes(text: str, delimiter: Delimiter) -> bool:
    """Whether cells can only be parsed if a backslash is before a quote in them."""
    if '\\"' not in text:
        return False
    # The beginning of the file may cut its last row.
    text = text[: text.rfind("\n") + 1] or text
    return not _is_strict(text, Dialect(delimiter=delimiter)) and _is_strict(
        text, Dialect(delimiter=delimiter, escape="\\")
    )


def _is_strict(text: str, dialect: Dialect) -> bool:
    try:
        for _ in parse_rows(io.StringIO(text, newline=""), dialect, strict=True):
            pass
    except csv.Error as error:
        return "unexpected end" in str(error)
    return True


def _rank_quotes(reading: _Reading) -> tuple[float, bool]:
    """Ranks readings of equal delimiters: by rows that fit, then without quotes left.

    A column is in single quotes if all of its cells are.
    """
    are_left = reading.dialect.quote == '"' and any(
        all(_SINGLE.fullmatch(cell) for cell in column if not is_missing(cell))
        for column in reading.columns
        if not all(map(is_missing, column))
    )
    is_escaped = reading.dialect.escape is not None
    return reading.share + is_escaped, not are_left


def _read(
    text: str, dialect: Dialect, is_whole: bool, is_declared: bool
) -> _Reading | None:
    """Returns the best reading, or None if no row can be a header of two columns."""
    rows = list(_rows(text, dialect, is_whole))[int(is_declared) :]
    best: _Reading | None = None
    for start, row in enumerate(rows[: _MOST_TITLES + 1]):
        reading = _Reading(dialect, rows[start:])
        if start and _may_follow_titles(reading):
            best = max(best or reading, reading, key=_share)
        elif not start and len(row.cells) > 1 and not _is_unnamed(row.cells):
            best = reading
        if (best is not None and best.share == 1) or not _is_title(row):
            break
    if best is None and rows and len(rows[0].cells) > 1:
        return _Reading(dialect, rows)
    return best


def _is_title(row: Row) -> bool:
    """Whether a row may be a title or a comment above the header."""
    first, *others = row.cells
    return first.startswith("#") or not any(cell.strip() for cell in others)


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
    names = reading.header
    return (
        reading.width > 1
        and len(reading.rows) > 1
        and all(name.strip() and not is_number(name) for name in names)
        and len(set(names)) == len(names)
        and bool(reading.numeric)
    )


def _is_numeric(cells: Sequence[str]) -> bool:
    known = [cell for cell in cells if not is_missing(cell)]
    return bool(known) and all(map(is_number, known))


def _has_spaces(spaces: _Reading, readings: Sequence[_Reading]) -> bool:
    """Whether spaces separate the cells, of which some are numbers."""
    if spaces.width < 2 or spaces.share < _MOSTLY:
        return False
    if len(spaces.rows) < 2 or not any(_is_numeric(each) for each in spaces.columns):
        return False
    # A tab may be among the spaces, and a comma inside a footer.
    return all(
        reading.share < spaces.share
        or (reading.dialect.delimiter == "\t" and _holds_numbers(reading))
        for reading in readings
    )


def _holds_numbers(reading: _Reading) -> bool:
    """Whether all cells of a column hold several numbers with spaces between."""
    return any(
        all(len(cell.split()) > 1 and is_number(cell.split()[0]) for cell in column)
        for column in reading.columns
        if column
    )


def _lacks_header(reading: _Reading) -> bool:
    """Whether the first row looks like the values below it.

    All of its cells above numbers are numbers, and they are no names such as years or
    counts; or it has a text that its column has below, too.
    """
    first = reading.header
    # A header may be repeated.
    below = [row for row in zip(*reading.columns, strict=True) if [*row] != first]
    if reading.has_row_names or not below:
        return False
    columns = [*zip(*below, strict=True)]
    numeric = {
        place for place, cells in enumerate(columns) if _is_mostly_numeric(cells)
    }
    numbers = [first[place] for place in numeric if is_number(first[place])]
    if any(
        not is_number(first[place]) and not _is_mark(first[place]) for place in numeric
    ):
        return False
    texts = [
        (first[place], cells)
        for place, cells in enumerate(columns)
        if place not in numeric and first[place].strip()
    ]
    alike = [_looks_like(cell, cells) for cell, cells in texts]
    if not numbers:
        return (
            len(columns[0]) >= _FEWEST_TEXTS
            and len(texts) == len(columns) > 1
            and all(cell in cells for cell, cells in texts)
        )
    return any(alike) or not _are_names(numbers)


def _looks_like(cell: str, others: Sequence[str]) -> bool:
    """Whether a text is among others, or has digits where most of them have."""
    if cell in others:
        return True
    shape = re.sub(r"\d", "0", cell)
    shapes = [re.sub(r"\d", "0", other) for other in others]
    return "0" in shape and 2 * shapes.count(shape) > len(shapes)


def _are_names(numbers: Sequence[str]) -> bool:
    """Whether numbers in the first row may name columns: they grow, as years do."""
    values = [float(number.replace(",", ".")) for number in numbers]
    steps = {round(b - a, 9) for a, b in itertools.pairwise(values)}
    are_whole = all(value.is_integer() for value in values)
    if len(values) < 3:
        counts = are_whole and (values[0] in (0, 1) or values[0] >= _FIRST_YEAR)
        return bool(counts and all(step > 0 for step in steps))
    return all(step > 0 for step in steps) and (are_whole or len(steps) == 1)


def _is_mark(cell: str) -> bool:
    """Whether a cell is missing, or a mark without letters and digits such as ?."""
    return is_missing(cell) or not any(letter.isalnum() for letter in cell)


def _is_mostly_numeric(cells: Sequence[str]) -> bool:
    known = [cell for cell in cells if not _is_mark(cell)]
    return bool(known) and sum(map(is_number, known)) >= _MOSTLY * len(known)


def _units_line(reading: _Reading) -> int | None:
    """Returns the line below the header if it has units or further names.

    It has texts above all columns of numbers, in brackets or of several kinds, and
    none of these texts are in the columns.
    """
    if len(reading.rows) < 3 or len(reading.rows[1].cells) != len(reading.header):
        return None
    row = reading.rows[1]
    if row.cells == reading.header:
        return None
    columns = [cells[1:] for cells in reading.columns]
    above = [
        cell
        for cell, cells in zip(row.cells, columns, strict=True)
        if _is_mostly_numeric(cells) and cell not in cells
    ]
    texts = [cell.strip() for cell in above if cell.strip()]
    num_numeric = sum(map(_is_mostly_numeric, columns))
    if not texts or len(above) < num_numeric or any(map(is_number, texts)):
        return None
    if any(map(_is_mark, texts)):
        return None
    are_bracketed = any(text[0] in "([{" for text in texts)
    are_units = are_bracketed or len({*texts}) > 1 or _UNIT.fullmatch(texts[0])
    return row.line if are_units else None


def _choose(readings: Sequence[_Reading], preferred: Delimiter) -> _Reading:
    # `max` returns the first of equals, which is the preferred one.
    return max(
        readings,
        key=lambda one: (
            one.share == 1 and one.dialect.delimiter == preferred,
            one.share,
            one.width,
        ),
    )


def _decimal_mark(reading: _Reading) -> DecimalMark:
    """Returns a comma if columns have decimal commas, and none has decimal points."""
    # Commas that separate cells are no decimal commas.
    if reading.dialect.delimiter == ",":
        return "."
    texts = [
        pa.array([None if is_missing(cell) else cell for cell in column], pa.string())
        for column in reading.columns
    ]
    batch = pa.record_batch(texts, names=[str(place) for place in range(len(texts))])
    dialect = reading.dialect
    commas, points = marked_columns(dialect, ","), marked_columns(dialect, ".")
    commas.add(batch)
    points.add(batch)
    return "," if commas.names and not points.names else "."


def _describe_others(best: _Reading, readings: Sequence[_Reading]) -> Iterator[str]:
    for other in readings:
        if other is not best and other.share == 1 and other.width >= best.width:
            yield (
                f"It could also be separated by {DELIMITERS[other.dialect.delimiter]}: "
                "quote the cells that hold a delimiter."
            )


def _describe_header(best: _Reading, has_header: bool) -> Iterator[str]:
    if not has_header:
        yield (
            f"The first line of the table, line {best.rows[0].line}, holds values like "
            "the others, so the columns are called 'column 1', 'column 2' and so on: "
            "add a line with the names of the columns."
        )
        return
    numeric = [
        name
        for name, column in zip(best.header, best.columns, strict=True)
        if _is_numeric(column)
    ]
    if numeric and all(map(is_number, numeric)):
        yield (
            f"The names of the columns, such as {numeric[0]!r}, look like values: if "
            "the file has no header, add a line with the names of the columns."
        )


def _describe_structure(best: _Reading, has_header: bool) -> Iterator[str]:
    if has_header and best.has_row_names:
        yield (
            "The rows have one cell more than the header, as R writes them: the first "
            "column holds the names of the rows."
        )
    line = _units_line(best) if has_header else None
    if line is not None:
        yield (
            f"Line {line}, below the names of the columns, holds units or further "
            f"names, such as {_first_text(best.rows[1].cells)!r}, and is left out."
        )


def _first_text(cells: Sequence[str]) -> str:
    return next(cell for cell in cells if cell.strip())
