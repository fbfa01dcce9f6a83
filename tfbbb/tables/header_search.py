"""Decides whether the first rows of a table are a header, values or units."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tfbbb.tables.csv_rows import (
    Row,
    is_comment,
    is_missing,
    is_number,
    is_numeric,
    is_surely_comment,
)
from tfbbb.tables.dialect import Dialect

# The share that is most.
MOSTLY = 0.9
# Most lines at the end that may be footers.
_MOST_FOOTERS = 5
# Fewest rows of texts that show a first row to be no header.
_FEWEST_TEXTS = 10
_FIRST_YEAR = 1000
_YEAR = re.compile(r"(1[6-9]|20)\d\d")
# What tables of plain text have below the names.
_RULE = re.compile(r":?[-=_]{2,}:?")
_BESIDE_DELIMITER = re.compile(r"\d[\"']?[,;|\t]|[,;|\t][\"']?[-+]?\d")
_UNIT = re.compile(r"[^\W\d]{1,2}[\w/²³°]{0,4}|[%°$€£]\w?")


@dataclass(frozen=True)
class Reading:
    """What a file holds if it is parsed by a dialect."""

    dialect: Dialect
    rows: list[Row]

    @property
    def header(self) -> list[str]:
        """The cells of the header."""
        return self.rows[0].cells

    @cached_property
    def has_row_names(self) -> bool:
        """Whether the rows begin with a distinct name that the header lacks."""
        width = len(self.header) + 1
        rows = [
            row.cells
            for row in self._above_footers(width)
            if row.cells != self.header and not is_comment(row.cells, self.dialect)
        ]
        longer = [cells for cells in rows if len(cells) == width]
        names = [cells[0].strip() for cells in longer]
        return (
            len(self.header) > 1
            and len(longer) > MOSTLY * sum(len(cells) > 1 for cells in rows)
            and any(cells[-1].strip() for cells in longer)
            and len({*names, ""}) == len(names) + 1
            and all(name.strip() for name in self.header)
        )

    def _above_footers(self, width: int) -> list[Row]:
        """Returns the rows below the header, less lines at the end without numbers."""
        rows = self.rows[1:]
        for place in range(max(len(rows) - _MOST_FOOTERS, 0), len(rows)):
            below = rows[place:]
            starts = below[0].follows_gap or len(below[0].cells) != width
            if starts and not any(
                is_number(cell) for row in below for cell in row.cells
            ):
                return rows[:place]
        return rows

    @cached_property
    def width(self) -> int:
        """The number of cells of the rows."""
        return len(self.header) + self.has_row_names

    @cached_property
    def share(self) -> float:
        """The share of the rows with as many cells as the header, without comments."""
        fits = [
            self._fits(row)
            for row in self.rows
            if row is self.rows[0] or not is_comment(row.cells, self.dialect)
        ]
        return sum(fits) / len(fits)

    def _fits(self, row: Row) -> bool:
        if row is self.rows[0]:
            return True
        if len(row.cells) > self.width:
            return not any(cell.strip() for cell in row.cells[self.width :])
        return len(row.cells) == self.width and not is_surely_comment(
            row.cells, self.dialect
        )

    @cached_property
    def columns(self) -> list[tuple[str, ...]]:
        """The cells below the header, of the rows as long as the header."""
        rows = [row.cells for row in self._above_footers(self.width) if self._fits(row)]
        others = [cells for cells in rows if cells != self.header]
        rows = rows if 2 * len(others) < len(rows) else others
        # The rows have as many cells as the header, or further empty ones.
        columns = [*zip(*rows, strict=False)] or [()] * self.width
        return columns[int(self.has_row_names) : self.width]

    @cached_property
    def numeric(self) -> list[int]:
        """The places of the columns that hold numbers below their first cell."""
        return [
            place
            for place, column in enumerate(self.columns)
            if is_numeric(column) or (len(column) > 2 and is_numeric(column[1:]))
        ]

    @cached_property
    def has_joined_numbers(self) -> bool:
        """Whether a delimiter is beside numbers in cells, so that it separates them."""
        for first, column in zip(self.rows[0].cells, self.columns, strict=False):
            if not _is_joined(first):
                continue
            known = [cell for cell in column if not is_missing(cell)]
            if 2 * sum(map(_is_joined, known)) >= len(known):
                return True
        return False


def _is_joined(cell: str) -> bool:
    """Whether a cell has a number beside a delimiter and is no number."""
    return _BESIDE_DELIMITER.search(cell) is not None and not is_number(cell)


def lacks_header(reading: Reading) -> bool:
    """Whether the first row looks like the values below it."""
    first = reading.header
    columns = reading.columns
    if reading.has_row_names or not columns[0]:
        return False
    numeric = [p for p, cells in enumerate(columns) if _is_mostly_numeric(cells)]
    above = [first[place] for place in numeric]
    numbers = [cell for cell in above if is_number(cell)]
    if not all(is_number(cell) or _is_mark(cell) for cell in above):
        return False
    if len(above) > 1 and all(cell.strip() and is_missing(cell) for cell in above):
        return True
    texts = [
        (cell, cells)
        for place, (cell, cells) in enumerate(zip(first, columns, strict=True))
        if place not in numeric and cell.strip()
    ]
    is_alike = any(_looks_like(cell, cells) for cell, cells in texts)
    if not numbers and not (numeric and is_alike):
        return (
            len(columns[0]) >= _FEWEST_TEXTS
            and len(texts) == len(columns) > 1
            and all(cell in cells for cell, cells in texts)
        )
    if is_alike:
        return True
    if len({*numbers}) == len(numbers) and _are_years(numbers):
        return all(_are_years(columns[place]) for place in numeric)
    return not _are_names(numbers)


def _looks_like(cell: str, others: Sequence[str]) -> bool:
    """Whether a text is among others, or has digits where most of them have."""
    if cell in others:
        return True
    shape = re.sub(r"\d", "0", cell)
    shapes = [re.sub(r"\d", "0", other) for other in others]
    return "0" in shape and 2 * shapes.count(shape) > len(shapes)


def _are_years(cells: Sequence[str]) -> bool:
    return all(_YEAR.fullmatch(cell.strip()) for cell in cells if not _is_mark(cell))


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
    others = [cell for cell in cells if not is_number(cell)]
    number = len(cells) - len(others)
    words = sum(not _is_mark(cell) for cell in others)
    return number > 0 and number >= MOSTLY * (number + words)


def find_units_line(reading: Reading) -> int | None:
    """Returns the line below the header if it has units or further names."""
    if len(reading.rows) < 3 or len(reading.rows[1].cells) != len(reading.header):
        return None
    row = reading.rows[1]
    if row.cells == reading.header:
        return None
    filled = [cell.strip() for cell in row.cells if cell.strip()]
    if filled and all(map(_RULE.fullmatch, filled)):
        return row.line
    columns = [cells[1:] for cells in reading.columns]
    numeric = [_is_mostly_numeric(cells) for cells in columns]
    above = [
        cell
        for cell, cells, are_numbers in zip(row.cells, columns, numeric, strict=True)
        if are_numbers and cell not in cells
    ]
    texts = [cell.strip() for cell in above if cell.strip()]
    if not texts or len(above) < sum(numeric) or any(map(is_number, texts)):
        return None
    if any(map(_is_mark, texts)):
        return None
    are_bracketed = any(text[0] in "([{" for text in texts)
    are_units = are_bracketed or len({*texts}) > 1 or _UNIT.fullmatch(texts[0])
    return row.line if are_units else None


def describe_table(best: Reading, remarks: Sequence[str] = ()) -> Dialect:
    """Returns the dialect with the place and the form of the header, and remarks."""
    has_header = not lacks_header(best)
    dialect = replace(
        best.dialect,
        header_line=best.rows[0].line,
        has_header=has_header,
        has_row_names=has_header and best.has_row_names,
        units_line=find_units_line(best) if has_header else None,
    )
    return replace(dialect, remarks=(*remarks, *_describe_header(best, dialect)))


def _describe_header(best: Reading, dialect: Dialect) -> Iterator[str]:
    if not dialect.has_header:
        yield (
            f"The first line of the table, line {dialect.header_line}, has values like "
            "those below it, so the columns are called 'column 1', 'column 2' and so "
            "on: add a line with the names of the columns."
        )
        return
    names = zip(best.header, best.columns, strict=True)
    numeric = [name for name, column in names if is_numeric(column)]
    if numeric and all(map(is_number, numeric)):
        yield (
            f"The names of the columns, such as {numeric[0]!r}, look like values: if "
            "the file has no header, add a line with the names of the columns."
        )
    if dialect.has_row_names:
        yield (
            "The rows have one cell more than the header, as R writes them: the first "
            "column holds the names of the rows."
        )
    if dialect.units_line is not None:
        example = next(cell for cell in best.rows[1].cells if cell.strip())
        yield (
            f"Line {dialect.units_line}, below the names of the columns, holds units "
            f"or further names, such as {example!r}, and is left out."
        )
