"""Finds the line of a row, and the line at which a CSV file is not a table."""

import csv
from itertools import islice

from tfbbb.tables.content import describe_content, table_format
from tfbbb.tables.csv_source import CsvSource
from tfbbb.tables.dialect import DELIMITERS, Dialect
from tfbbb.tables.table_error import TableError


def check_content(source: CsvSource) -> None:
    """Raises a `TableError` if the file is not CSV but, for instance, JSON."""
    beginning = source.beginning()
    found = describe_content(beginning)
    if found is None:
        return
    advice = "save the table as CSV or Parquet."
    if source.compression is None and (format := table_format(beginning)):
        advice = f"rename the file to a name that ends in .{format}."
    raise TableError(f"{source.path} holds {found}, not CSV; {advice}")


def read_header(source: CsvSource, dialect: Dialect) -> list[str]:
    """Returns the cells of the header, or an empty list if it cannot be read."""
    lines = source.lines(dialect.encoding)
    try:
        rows = csv.reader(
            islice(lines, dialect.header_line - 1, None), delimiter=dialect.delimiter
        )
        return next((row for row in rows if row), [])
    except (csv.Error, UnicodeDecodeError):
        return []


def find_line(source: CsvSource, dialect: Dialect, row: int) -> int:
    """Returns the number of the line in which a row begins, from 1.

    Args:
        source: The file.
        dialect: How the file writes its table.
        row: Index of the row; -1 for the header.
    """
    skipped = dialect.header_line - 1
    rows = csv.reader(
        islice(source.lines(dialect.encoding), skipped, None),
        delimiter=dialect.delimiter,
    )
    start, left = skipped + 1, row + 1
    for cells in rows:
        if cells and not left:
            break
        left -= bool(cells)
        start = skipped + rows.line_num + 1
    return start


def check_rows(source: CsvSource, dialect: Dialect) -> None:
    """Raises a `TableError` that names the first malformed line.

    Every line must have as many cells as the header.
    """
    skipped = dialect.header_line - 1
    rows = csv.reader(
        islice(source.lines(dialect.encoding), skipped, None),
        delimiter=dialect.delimiter,
        strict=True,
    )
    header: list[str] | None = None
    num_rows = 0
    start = skipped + 1
    try:
        for row in rows:
            if row and header is None:
                header = row
            elif row and len(row) != len(header or ()):
                raise TableError(
                    f"{source.path}: line {start} has {_count_cells(row)}, but the "
                    f"header has {_count_cells(header or [])}{_describe(dialect)}."
                )
            elif row:
                num_rows += 1
            start = skipped + rows.line_num + 1
    except csv.Error as error:
        raise TableError(f"{source.path}: line {start}: {error}.") from None
    if header is None:
        raise TableError(f"{source.path} is empty.")
    if not num_rows:
        raise TableError(f"{source.path} has a header but no rows.")


def _describe(dialect: Dialect) -> str:
    if dialect.delimiter == ",":
        return ""
    return f" (the cells are separated by {DELIMITERS[dialect.delimiter]})"


def _count_cells(row: list[str]) -> str:
    return "1 cell" if len(row) == 1 else f"{len(row)} cells"
