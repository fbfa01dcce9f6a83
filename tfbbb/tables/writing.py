"""Writes Arrow tables to CSV, Parquet, JSON lines and Excel files."""

import csv
import datetime
import importlib.util
import io
import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import orjson
import pyarrow as pa
import pyarrow.parquet

from tfbbb.tables.table_error import TableError

_SUFFIXES = (".csv", ".jsonl", ".parquet", ".xlsx")
_ROWS_AT_ONCE = 65536
_MOST_EXCEL_ROWS = 2**20 - 1


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raises a `TableError` unless `write_table` could write to `path`."""
    path = Path(path)
    if path.suffix.lower() not in _SUFFIXES:
        *first, last = _SUFFIXES
        raise TableError(
            f"{path} has an unknown format: its name must end in "
            f"{', '.join(first)} or {last}."
        )
    excel = path.suffix.lower() == ".xlsx"
    if excel and importlib.util.find_spec("xlsxwriter") is None:
        raise TableError(
            f"{path} cannot be written without the package XlsxWriter; install it with "
            "`pip install 'tfbbb[excel]'`, or name a .csv file."
        )
    if path.is_dir():
        raise TableError(f"{path} is a directory, not a file.")
    if not path.absolute().parent.is_dir():
        raise TableError(f"{path} cannot be written: there is no such directory.")


def keeps_all_digits(path: str | os.PathLike[str]) -> bool:
    """Returns whether numbers are for programs to read, not for people."""
    return Path(path).suffix.lower() == ".parquet"


def write_table(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Writes a `.csv`, `.jsonl`, `.parquet` or `.xlsx` file.

    The write is atomic: it goes to a temporary file in the same directory, which then
    replaces `path`.

    Args:
        table: Table to write.
        path: File to write; an existing file is replaced.

    Raises:
        TableError: The suffix is another, the directory does not exist, or an Excel
            file lacks its library or cannot hold so many rows.

    Example:

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> write_table(pa.table({"a": [1, 2]}), path)
    >>> path.read_text().split()
    ['a', '1', '2']
    """
    check_writable(path)
    path = Path(path).absolute()
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            match path.suffix.lower():
                case ".parquet":
                    pa.parquet.write_table(table, file)
                case ".jsonl":
                    write_json_lines(table, file)
                case ".xlsx":
                    _write_excel(table, file)
                case _:
                    write_csv(table, file)
            file.flush()
            os.fsync(file.fileno())
        # `mkstemp` creates a private file; give it the permissions of other new files.
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_csv(table: pa.Table, file: BinaryIO) -> None:
    """Writes CSV to a binary file, with quotes where needed; null is an empty cell."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        columns = [column.cast(pa.string()).to_pylist() for column in batch.columns]
        writer.writerows(zip(*columns, strict=True))
    # Leave the file open for the caller.
    text.detach()


def write_json_lines(table: pa.Table, file: BinaryIO) -> None:
    """Writes one JSON object per row; a number that is not finite becomes null."""
    for row in _rows(table):
        values = dict(zip(table.column_names, row, strict=True))
        file.write(orjson.dumps(values, default=str, option=orjson.OPT_APPEND_NEWLINE))


def _write_excel(table: pa.Table, file: BinaryIO) -> None:
    from xlsxwriter import Workbook

    if table.num_rows > _MOST_EXCEL_ROWS:
        raise TableError(
            f"An Excel sheet has at most {_MOST_EXCEL_ROWS} rows below its header; "
            f"write a .csv or .parquet file. Received: {table.num_rows} rows"
        )
    # Texts are data: a text that begins with `=` is no formula.
    texts = dict.fromkeys(("strings_to_formulas", "strings_to_urls"), False)
    options = {"constant_memory": True, "default_date_format": "yyyy-mm-dd", **texts}
    with Workbook(file, options) as workbook:
        sheet = workbook.add_worksheet()
        sheet.freeze_panes(1, 0)
        sheet.write_row(0, 0, table.column_names)
        for number, row in enumerate(_rows(table), 1):
            sheet.write_row(number, 0, [_as_cell(value) for value in row])


def _rows(table: pa.Table) -> Iterator[tuple[object, ...]]:
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _as_cell(value: object) -> object:
    """Returns a value that Excel has; others as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.isoformat()
    known = (bool, int, float, str, datetime.date, datetime.time, datetime.timedelta)
    return value if value is None or isinstance(value, known) else str(value)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
