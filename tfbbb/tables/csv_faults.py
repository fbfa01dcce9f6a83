"""Finds the line of a row, and says why a file is not CSV."""

import csv
from collections import deque
from itertools import islice

from tfbbb.tables.column_names import fill_names
from tfbbb.tables.csv_rows import read_rows, regular_rows
from tfbbb.tables.csv_source import CsvSource
from tfbbb.tables.dialect import Dialect
from tfbbb.tables.table_error import TableError


def read_header(source: CsvSource, dialect: Dialect) -> list[str]:
    """Returns the cells of the header, or an empty list if it cannot be read.

    Row names have no name. Without a header, all names are empty. A name that the
    header lacks may be in the line of units.
    """
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


def find_line(source: CsvSource, dialect: Dialect, row: int) -> int:
    """Returns the number of the line in which a row begins, from 1."""
    if row < 0:
        return next((first.line for first in read_rows(source, dialect)), 1)
    rows = regular_rows(source, dialect, read_header(source, dialect))
    return next((found.line for found in islice(rows, row, None)), 1)


def check_quotes(source: CsvSource, dialect: Dialect) -> None:
    """Raises a `TableError` that names the line of a quote that is never closed."""
    try:
        deque(read_rows(source, dialect, strict=True), maxlen=0)
    except csv.Error as error:
        raise TableError(f"{source.path}: {error}.") from None
