"""The rows of a CSV file, of which irregular lines are filled or left out."""

import csv
import math
import re
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from tfbbb.tables.dialect import DELIMITERS, Dialect
from tfbbb.tables.notations.missing_marks import MISSING_WORDS
from tfbbb.tables.table_error import TableError
from tfbbb.tables.text_encoding import CsvSource
from tfbbb.tables.values import count_cells

NUMBER = re.compile(r" *[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)? *")
# Most rows at the end that may be a footer.
MOST_BELOW = 100
# Rows whose cells show which columns hold numbers.
RECENT = 20
_MOST_SURPLUS = 1000
_FOOTER = re.compile(
    r"\W*(sources?|(foot)?notes?|quellen?|anmerkung|hinweis|fuente|nota|remarks?"
    r"|comments?|(last )?updated|data (from|source)|copyright|disclaimer|legend"
    r"|generated|exported|downloaded|retrieved|end of (file|data|table)"
    r"|\d+ rows?)\b|[*†‡©]+ *[^\W\d]|\[\w\] |\(\w\) |\d\) |(end|eof)\W*$",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"(grand[ -]|sub-?)?(totals?|totale|totaal|sums?|overall|averages?|means?|gesamt"
    r"|summe|insgesamt|mittelwert|durchschnitt|somme|ensemble|suma|razem|итого|всего"
    r"|合計|总计|總計|小计)( \(?\w+\)?)?:?",
    re.IGNORECASE,
)
_RULE = re.compile(r"[-=_*]{3,}")
_COMMENT = re.compile(r"\s*(#|//|%+ *[^\W\d])")
_COMMENT_MARK = re.compile(r"#+|//+|%+")
_SENTENCE_LENGTH = 25
_REMARKS = {
    "short": "fewer cells than {first}, so those at the end are missing values",
    "trailing": "empty cells beyond the last column are left out",
    "comment": "left out as a comment; if it is a row, fill its cells",
    "repeated": "left out, as it repeats the names of the columns",
    "empty": "left out as empty above a footer",
    "footer": "left out as a footer; if it is a row, fill its cells",
    "total": "left out, as it sums up the rows above; if it is a row like them, change "
    "its first cell or move it up",
    "blank": "left out, as no row below has a value; to keep it, fill the last one",
}


class Row(NamedTuple):
    """The cells of a row that is not blank."""

    line: int
    cells: list[str]
    follows_gap: bool = False

    @property
    def filled(self) -> list[str]:
        """The cells that are not empty."""
        return [cell for cell in self.cells if cell.strip()]


def parse_rows(
    lines: Iterable[str], dialect: Dialect, *, line: int = 1, strict: bool = False
) -> Iterator[Row]:
    """Yields the rows of lines, blank ones left out."""
    has_spaces = dialect.delimiter == " "
    if has_spaces:
        lines = (line.replace("\t", " ") for line in lines)
    reader = csv.reader(
        lines,
        delimiter=dialect.delimiter,
        quotechar=dialect.quote,
        escapechar=dialect.escape,
        skipinitialspace=has_spaces,
        strict=strict,
    )
    start, follows_gap = line, False
    try:
        for cells in reader:
            if has_spaces:
                while cells and not cells[-1]:
                    cells.pop()
            if cells:
                yield Row(start, cells, follows_gap)
            follows_gap = not cells
            start = line + reader.line_num
    except csv.Error as error:
        raise csv.Error(f"line {start}: {error}") from None


def read_rows(
    source: CsvSource, dialect: Dialect, *, strict: bool = False
) -> Iterator[Row]:
    """Yields the rows of a file from its header or first row on; see `parse_rows`."""
    skipped = dialect.header_line - 1
    lines = source.lines(dialect.encoding, is_damaged=dialect.is_damaged)
    lines = islice(lines, skipped, None)
    return parse_rows(lines, dialect, line=skipped + 1, strict=strict)


def is_number(cell: str) -> bool:
    """Whether a cell is a number with a decimal point or a decimal comma."""
    return NUMBER.fullmatch(cell) is not None


def is_missing(cell: str) -> bool:
    """Whether a cell is missing in columns of every type."""
    return cell.strip() in MISSING_WORDS


def is_numeric(cells: Sequence[str]) -> bool:
    """Whether all known cells are numbers, at least one."""
    return all(is_number(cell) or is_missing(cell) for cell in cells) and any(
        map(is_number, cells)
    )


def is_comment(cells: Sequence[str], dialect: Dialect) -> bool:
    """Whether a line with these cells is a comment, unless it is a row."""
    return _COMMENT.match(join_words(cells, dialect)) is not None


def is_surely_comment(cells: Sequence[str], dialect: Dialect) -> bool:
    """Whether a line is a comment even if it has as many words as a row has cells."""
    is_mark = dialect.delimiter == " " and _COMMENT_MARK.fullmatch(cells[0])
    return bool(is_mark) and is_comment(cells, dialect)


def join_words(cells: Sequence[str], dialect: Dialect) -> str:
    """Returns the first cell; between spaces the whole line, a cell for each word."""
    return " ".join(cells) if dialect.delimiter == " " else cells[0]


def may_end_table(rows: Sequence[Sequence[str | None]]) -> bool:
    """Whether the last of some rows may be blank, a footer or a sum, not a row."""
    *above, last = rows
    filled = [cell for cell in last if cell is not None and cell.strip()]
    if len(last) < 2 or not filled:
        return len(last) > 1
    is_unnamed = last[0] is None and all(row[0] is not None for row in above)
    return (
        len(filled) == 1
        or is_unnamed
        or _begins_below(filled[0])
        or bool(_misfits(last, above))
    )


def _begins_below(cell: str) -> bool:
    return bool(_TOTAL.fullmatch(cell.strip()) or _FOOTER.match(cell))


def _misfits(
    row: Sequence[str | None], above: Sequence[Sequence[str | None]]
) -> list[int]:
    """Returns the places where a row has words in columns of numbers."""
    return [
        place
        for place, cell in enumerate(row)
        if cell and not is_missing(cell) and not is_number(cell)
        if _is_numeric(above, place)
    ]


def _is_numeric(rows: Sequence[Sequence[str | None]], place: int) -> bool:
    return is_numeric([row[place] or "" for row in rows if place < len(row)])


class RegularRows:
    """The rows of a file below its header, each with as many cells as the header.

    - Cells that a row lacks at its end are empty; empty cells beyond the header are
      left out.
    - Lines inside the table that begin with `#`, `//` or `%` and have another number
      of cells are left out, and so are repetitions of the header.
    - At the end, footers, sums and rows without a value are left out.

    After the last row, `remarks` has a sentence about each of these.
    """

    def __init__(
        self,
        read: Callable[[], Iterator[Row]],
        dialect: Dialect,
        header: Sequence[str],
        *,
        where: str,
        noun: str = "line",
    ) -> None:
        self._read = read
        self._where = where
        self._noun = noun
        self._dialect = dialect
        self._header = list(header)
        self._width = len(header)
        self._first = "the header" if dialect.has_header else "the first row"
        # The least number of cells of a row that is not short.
        self._least = count_named(header) if dialect.has_header else len(header)
        self._found: dict[str, list[Row]] = {}
        self._counts: dict[str, int] = {}
        self._recent: deque[list[str]] = deque(maxlen=RECENT)
        self._num_rows = 0
        self._num_single = 0
        self._num_totals = 0

    @property
    def remarks(self) -> Iterator[str]:
        """Sentences about the rows that were filled or left out."""
        for kind, said in _REMARKS.items():
            if not (rows := self._found.get(kind)):
                continue
            row, more = rows[0], self._counts[kind] - 1
            others = f" and {more} more" if more else ""
            filled = row.filled[:1] if kind == "total" else row.filled
            text = repr(self._dialect.delimiter.join(filled).strip())
            shown = f", {text}" if kind in ("comment", "footer", "total") else ""
            place = f"{self._noun.capitalize()} {row.line}{others}{shown}"
            yield f"{place}: {said.format(first=self._first)}."

    def __iter__(self) -> Iterator[Row]:
        """Yields the rows."""
        held: deque[Row] = deque()
        for row in self._rows():
            if self._may_be_below(row, held):
                gap = bool(held) and (held[-1].follows_gap or not held[-1].filled)
                held.append(row._replace(follows_gap=row.follows_gap or gap))
                # Blank rows wait for a row with values, however many they are.
                if len(held) > MOST_BELOW and row.filled:
                    yield from self._fill(held.popleft())
                continue
            while held:
                self._num_totals += _is_named_total(held[0])
                yield from self._fill(held.popleft())
            yield from self._fill(row)
        # A table without any values keeps its rows.
        has_values = self._num_rows > 0 or any(row.filled for row in held)
        while has_values and held and not held[-1].filled:
            self._count("blank", held.pop(), is_first=True)
        while held and (kind := self._kind_below(held[-1])):
            self._count(kind, held.pop(), is_first=True)
        for row in held:
            yield from self._fill(row)
        self._check()

    def _rows(self) -> Iterator[Row]:
        """Yields the rows without comments, repeated headers and empty cells beyond."""
        rows = self._read()
        skipped = int(self._dialect.has_header)
        skipped += self._dialect.units_line is not None
        follows_gap = False
        for row in islice(rows, skipped, None):
            cells = row.cells
            if len(cells) == self._width:
                if self._repeats_header(cells):
                    self._count("repeated", row)
                elif is_surely_comment(cells, self._dialect):
                    self._count("comment", row)
                else:
                    yield row
                continue
            if len(cells) == 1 and not cells[0].strip():
                follows_gap = True
                continue
            if follows_gap:
                row = row._replace(follows_gap=True)
                follows_gap = False
            if is_comment(cells, self._dialect):
                self._count("comment", row)
            elif len(cells) > self._width and not any(
                cell.strip() for cell in cells[self._width :]
            ):
                if not (self._dialect.has_row_names or self._dialect.delimiter == " "):
                    self._count("trailing", row)
                yield row._replace(cells=cells[: self._width])
            elif self._dialect.has_row_names and self._repeats_header(["", *cells]):
                self._count("repeated", row)
            else:
                yield row

    def _repeats_header(self, cells: list[str]) -> bool:
        start = int(self._dialect.has_row_names)
        return (
            self._dialect.has_header
            and cells[-1] == self._header[-1]
            and cells[start:] == self._header[start:]
            and any(not is_number(cell) for cell in cells[start:])
        )

    def _may_be_below(self, row: Row, held: Sequence[Row]) -> bool:
        """Whether a row may be below the table, if no other row follows."""
        if len(row.cells) != self._width or row.follows_gap:
            return True
        if held and self._misfits(row):
            return True
        filled = row.filled if not row.cells[1:2] or not row.cells[1] else row.cells
        return self._width > 1 and (
            len(filled) < 2 or not row.cells[0].strip() or _begins_below(filled[0])
        )

    def _kind_below(self, row: Row) -> str | None:
        """Returns what a row at the end is instead of a row of the table, or None."""
        filled = row.filled
        if not filled:
            return "empty" if "footer" in self._counts else None
        if self._is_footer(row, filled):
            return "footer"
        if self._is_total(row, filled):
            return "total"
        return None

    def _is_footer(self, row: Row, filled: list[str]) -> bool:
        text = join_words(filled, self._dialect).strip()
        has_words = len(text.split()) > 1
        is_ragged = len(row.cells) != self._width
        is_alone = len(filled) == 1 or self._is_sentence(row)
        if is_alone and is_ragged and self._width > 1 and _RULE.fullmatch(text):
            return True
        first = row.cells[0]
        if first.strip() and any(cells[0] == first for cells in self._recent):
            return False
        if is_number(text) or not any(letter.isalpha() for letter in text):
            return False
        is_marked = _FOOTER.match(text) is not None
        is_sentence = has_words and (
            len(text) > _SENTENCE_LENGTH or text[-1] in ".:" or ":" in text
        )
        is_below = is_ragged or is_marked or (row.follows_gap and has_words)
        if is_below and self._misfits(row):
            return True
        if is_ragged and is_marked:
            return True
        if not is_alone or self._width == 1:
            return False
        if not is_ragged:
            is_long = len(text) > _SENTENCE_LENGTH and text.endswith(".")
            return is_marked or row.follows_gap or is_long
        if row.follows_gap and (has_words or self._width > 2):
            return True
        return not self._num_single and (is_sentence or (has_words and self._width > 2))

    def _is_sentence(self, row: Row) -> bool:
        """Whether a line between spaces is no row, by its words, without numbers."""
        is_ragged = len(row.cells) != self._width
        return self._dialect.delimiter == " " and is_ragged and not self._fits(row)

    def _misfits(self, row: Row) -> bool:
        """Whether a row has words, and no number, in the columns of numbers."""
        return bool(_misfits(row.cells[: self._width], self._recent)) and not (
            self._fits(row)
        )

    def _fits(self, row: Row) -> bool:
        """Whether a row has a number in a column of numbers."""
        return any(
            is_number(cell) and _is_numeric(self._recent, place)
            for place, cell in enumerate(row.cells[: self._width])
        )

    def _is_total(self, row: Row, filled: list[str]) -> bool:
        if self._width < 2 or len(row.cells) > self._width or self._num_totals:
            return False
        if not _is_named_total(row):
            is_unnamed = not row.cells[0].strip() and len(filled) > 1
            are_named = all(cells[0].strip() for cells in self._recent)
            return is_unnamed and are_named and all(self._sums(row) or [False])
        return len(filled) < self._width or any(self._sums(row))

    def _sums(self, row: Row) -> list[bool]:
        """Returns whether a row has the sum or the mean of each column of numbers."""
        places = [
            place
            for place, cell in enumerate(row.cells)
            if is_number(cell) and _is_numeric(self._recent, place)
        ]
        above = {place: array("d") for place in places}
        again = RegularRows(self._read, self._dialect, self._header, where=self._where)
        for other in again._rows():
            if other.line >= row.line:
                break
            for place in places if not _is_named_total(other) else ():
                if place < len(other.cells) and is_number(other.cells[place]):
                    above[place].append(_value(other.cells[place]))
        return [_sums_up(_value(row.cells[p]), values) for p, values in above.items()]

    def _fill(self, row: Row) -> Iterator[Row]:
        """Yields a row of the table with a cell for each column."""
        missing = self._width - len(row.cells)
        if missing < 0:
            self._count("surplus", row)
            if self._counts["surplus"] > _MOST_SURPLUS:
                self._check()
            return
        self._num_rows += 1
        if missing:
            if len(row.cells) < self._least:
                self._count("short", row)
                self._num_single += len(row.cells) == 1
            row = row._replace(cells=[*row.cells, *[""] * missing])
        self._recent.append(row.cells)
        yield row

    def _count(self, kind: str, row: Row, *, is_first: bool = False) -> None:
        """Counts a row, and stores the first two of its kind."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        rows = self._found.setdefault(kind, [])
        rows.insert(0 if is_first else len(rows), row)
        del rows[2:]

    def _check(self) -> None:
        num_short = self._counts.get("short", 0)
        is_short = num_short and (
            num_short == self._num_rows or 2 * self._num_single > self._num_rows
        )
        rows = self._found.get("surplus") or (self._found["short"] if is_short else [])
        if not rows:
            return
        kind = "surplus" if "surplus" in self._found else "short"
        more = self._counts[kind] - 1
        others = between = ""
        if more == 1:
            others = f"; line {rows[1].line} differs from it, too"
        elif more:
            others = f"; {more} more lines differ from it, such as line {rows[1].line}"
        if (delimiter := self._dialect.delimiter) != ",":
            between = f" (the cells are separated by {DELIMITERS[delimiter]})"
        raise TableError(
            f"{self._where}: line {rows[0].line} has "
            f"{count_cells(len(rows[0].cells))}, but {self._first} has "
            f"{count_cells(self._width)}{between}{others}."
        )


def _sums_up(value: float, numbers: Sequence[float]) -> bool:
    """Whether a value is the sum of numbers, or the mean of numbers that vary."""
    if len(numbers) < 2:
        return False
    total = sum(numbers)
    expected = [total]
    if min(numbers) < max(numbers):
        expected.append(total / len(numbers))
    return any(math.isclose(value, other, rel_tol=1e-3) for other in expected)


def _is_named_total(row: Row) -> bool:
    filled = row.filled
    return bool(filled) and _TOTAL.fullmatch(filled[0].strip()) is not None


def count_named(names: Sequence[str]) -> int:
    """Returns the number of columns up to the last one with a name, at least one."""
    named = [place for place, name in enumerate(names) if name.strip()]
    return max(named, default=0) + 1


def _value(cell: str) -> float:
    return float(cell.replace(",", "."))
