"""Finds the delimiter, the decimal mark and the header line of a CSV file."""

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tfbbb.tables.column_names import may_begin_with_index
from tfbbb.tables.csv_rows import Row, is_missing, is_number, is_numeric, parse_rows
from tfbbb.tables.dialect import DELIMITERS, DecimalMark, Delimiter, Dialect
from tfbbb.tables.format import BEGINNING_BYTES
from tfbbb.tables.header_search import Reading, describe_table
from tfbbb.tables.text_encoding import CsvSource, decode, find_encoding

# Most lines above the header that are not blank.
_MOST_TITLES = 20
# The least share of rows that spaces must cut into as many cells as the header.
_LEAST_SHARE_OF_SPACES = 0.8
# The least share of rows that tabs must cut so, for spaces to be parts of cells.
_LEAST_SHARE_OF_TABS = 0.5
# The delimiters that are not blank.
_MARKS = [delimiter for delimiter in DELIMITERS if delimiter != " "]
_SINGLE = re.compile(r" *'.*' *", re.DOTALL)
# Such as 1,5 or 1.234,5 for the mark ",".
_NUMBER = r" *[+-]?((\d+|[1-9]\d{0,2}(OTHER\d{3})+)MARK?\d*|MARK\d+)([eE][+-]?\d+)? *"
# The first line that Excel reads, and writes for other programs, as "sep=;".
_DECLARATION = re.compile(r'"?sep=([,;\t|])"?[\r\n]+')


def find_dialect(source: CsvSource, *, preferred: Delimiter = ",") -> Dialect:
    """Returns the dialect by the beginning of a file.

    The delimiter is the preferred one if it gives all rows as many cells as the header,
    or another that does so for all or for the most rows, spaces last.
    """
    found = find_encoding(source)
    beginning = source.beginning()
    text = decode(beginning, found.encoding, is_damaged=found.is_damaged)
    is_whole = len(beginning) < BEGINNING_BYTES
    declared = _DECLARATION.match(text)
    delimiters: list[Delimiter] = [preferred]
    delimiters += [other for other in _MARKS if other != preferred]
    if declared:
        delimiters = [each for each in _MARKS if each == declared[1]]
    readings = [
        reading
        for delimiter in delimiters
        if delimiter in text
        and (reading := _read_best(text, delimiter, is_whole, bool(declared)))
    ]
    spaces = None if declared else _read_best(text, " ", is_whole, False)
    if spaces is not None and _has_spaces(spaces, readings):
        readings = [spaces]
    if readings:
        best = _choose(readings, delimiters[0])
        others = _describe_others(best, readings)
        dialect = describe_table(best, (*found.doubts, *others))
    else:
        dialect = Dialect(delimiter=delimiters[0], remarks=found.doubts)
        best = Reading(dialect, [*_rows(text, dialect, is_whole)][bool(declared) :])
        if best.rows:
            dialect = replace(dialect, header_line=best.rows[0].line)
    return replace(
        dialect,
        encoding=found.encoding,
        is_damaged=found.is_damaged,
        has_mark=beginning.startswith(codecs.BOM_UTF8),
        decimal_mark=_decimal_mark(best) if best.rows else ".",
    )


def _rows(text: str, dialect: Dialect, is_whole: bool) -> Iterator[Row]:
    first = last = None
    try:
        for row in parse_rows(io.StringIO(text, newline=""), dialect):
            if last is not None:
                yield last
            first, last = first or row, row
    except csv.Error:
        # The reader of the whole file names the line, which is after the last row.
        is_whole = True
    # The beginning of the file may cut its last row.
    if last is not None and (is_whole or last is first):
        yield last


def _quotes(text: str, delimiter: Delimiter) -> Iterator[Dialect]:
    """Yields the dialects of cells in double or single quotes, with escaped quotes."""
    escaped = Dialect(delimiter=delimiter, escape="\\")
    if _has_escaped_quotes(text, delimiter):
        yield escaped
        return
    yield Dialect(delimiter=delimiter)
    if re.search(rf"(^|{re.escape(delimiter)}) *'", text, re.MULTILINE):
        yield Dialect(delimiter=delimiter, quote="'")
    if f"\\{delimiter}" in text:
        yield escaped


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


def _rank_quotes(reading: Reading) -> tuple[float, bool]:
    """Ranks readings of one delimiter: by rows that fit, then without quotes left."""
    are_left = reading.dialect.quote == '"' and any(
        all(_SINGLE.fullmatch(cell) for cell in cells if not is_missing(cell))
        for cells in (reading.header, *reading.columns)
        if not all(map(is_missing, cells))
    )
    return reading.share, not are_left


def _read_best(
    text: str, delimiter: Delimiter, is_whole: bool, is_declared: bool
) -> Reading | None:
    """Returns the reading with the best quotes, or None."""
    start = int(is_declared)
    readings = [
        reading
        for quotes in _quotes(text, delimiter)
        if (reading := find_reading([*_rows(text, quotes, is_whole)][start:], quotes))
    ]
    return max(readings, key=_rank_quotes, default=None)


def find_reading(rows: list[Row], dialect: Dialect) -> Reading | None:
    """Returns rows from the header on, or None if none can be one of two columns."""
    best: Reading | None = None
    for start, row in enumerate(rows[: _MOST_TITLES + 1]):
        reading = Reading(dialect, rows[start:])
        # A title of several words is a row of several cells between spaces.
        if dialect.delimiter == " " and any(
            below.follows_gap for below in rows[start + 1 : start + 2]
        ):
            continue
        if start and _may_follow_titles(reading):
            best = max(best or reading, reading, key=lambda one: one.share)
        elif (
            not start
            and len(row.cells) > 1
            and (all(map(str.strip, row.cells)) or may_begin_with_index(row.cells))
        ):
            best = reading
        is_title = row.cells[0].startswith("#") or len(row.filled) < 2
        if (best is not None and best.share == 1) or not is_title:
            break
    if best is None and rows and len(rows[0].cells) > 1:
        return Reading(dialect, rows)
    return best


def _may_follow_titles(reading: Reading) -> bool:
    """Whether a row below titles is certainly a header."""
    names = reading.header
    return (
        reading.width > 1
        and len(reading.rows) > 1
        and all(name.strip() and not is_number(name) for name in names)
        and len(set(names)) == len(names)
        and bool(reading.numeric)
    )


def _has_spaces(spaces: Reading, readings: Sequence[Reading]) -> bool:
    """Whether spaces separate the cells, of which some are numbers."""
    if spaces.width < 2 or spaces.share < _LEAST_SHARE_OF_SPACES:
        return False
    if len(spaces.rows) < 2 or not any(is_numeric(each) for each in spaces.columns):
        return False
    # A comma may be inside a footer.
    return all(
        _are_spaces(reading)
        if reading.dialect.delimiter == "\t" and reading.share >= _LEAST_SHARE_OF_TABS
        else reading.share < spaces.share
        for reading in readings
    )


def _are_spaces(reading: Reading) -> bool:
    """Whether tabs are among spaces that separate cells."""
    return any(
        all(len(cell.split()) > 1 and is_number(cell.split()[0]) for cell in column)
        for column in reading.columns
        if column
    )


def _choose(readings: Sequence[Reading], preferred: Delimiter) -> Reading:
    # `max` returns the first of equals, which is the preferred one.
    return max(
        readings,
        key=lambda one: (
            one.share == 1
            and one.dialect.delimiter == preferred
            and not one.has_joined_numbers,
            one.share == 1,
            not one.has_joined_numbers,
            one.share,
            one.width,
        ),
    )


def _decimal_mark(reading: Reading) -> DecimalMark:
    """Returns a comma if columns have decimal commas, and none has decimal points."""
    # Commas that separate cells are no decimal commas.
    if reading.dialect.delimiter == ",":
        return "."
    # A file separated by semicolons is written where commas are decimal marks.
    commas = _has_marked_column(
        reading, ",", ".", counts_groups=reading.dialect.delimiter == ";"
    )
    points = _has_marked_column(reading, ".", ",", counts_groups=False)
    return "," if commas and not points else "."


def _has_marked_column(
    reading: Reading, mark: str, other: str, *, counts_groups: bool
) -> bool:
    """Whether all cells of a column are numbers, and some have a decimal mark."""
    mark, other = re.escape(mark), re.escape(other)
    number = re.compile(_NUMBER.replace("MARK", mark).replace("OTHER", other))
    marked = re.compile(f".*{mark}")
    if not counts_groups:
        # A mark before groups of three digits, as in 12,345, is none.
        marked = re.compile(rf"(?! *[+-]?[1-9]\d{{0,2}}(?:{mark}\d{{3}})+ *$).*{mark}")
    for column in reading.columns:
        known = [cell for cell in column if not is_missing(cell)]
        if all(map(number.fullmatch, known)) and any(map(marked.match, known)):
            return True
    return False


def _describe_others(best: Reading, readings: Sequence[Reading]) -> Iterator[str]:
    for other in readings:
        is_possible = other.share == 1 and not other.has_joined_numbers
        if other is not best and is_possible and other.width >= best.width:
            yield (
                f"It could also be separated by {DELIMITERS[other.dialect.delimiter]}: "
                "quote the cells that hold a delimiter."
            )
