"""Reads a file into an Arrow table."""

import os
from collections.abc import Callable, Iterable

import pyarrow as pa

from tfbbb.tables.plain_values import typed_table
from tfbbb.tables.scan import TableScan


def read_table(
    path: str | os.PathLike[str],
    *,
    text_columns: Iterable[str] = (),
    sheet: str | None = None,
    notify: Callable[[str], object] | None = None,
) -> pa.Table:
    r"""Reads a table from a file; the suffix of its name is its format.

    - `.csv`, `.tsv`, `.txt`, `.dat`, `.data`, also with `.gz` or `.zst`, and `.tab`:
      text, separated by commas, semicolons, tabs, vertical bars or spaces;
    - `.jsonl`, `.ndjson`: JSON lines, one object per line, without nested values;
    - `.parquet`: Parquet;
    - `.arrow`, `.feather`: Arrow IPC, file or stream; Feather of version 2;
    - `.xlsx`, `.ods`: a sheet of a workbook; needs `pip install 'tfbbb[excel]'`.

    Reading finds the encoding of a CSV file, its delimiter, its quotes, its decimal
    mark and its header, and checks them against all rows. A file that can be read with
    the commas (of `.tsv`: the tabs) is read so. Titles and comments above the header
    are skipped if the header has distinct names that are not numbers, above a column
    of numbers. Columns without a name get one. Cells that a row lacks are missing;
    footers, sums, comments and repeated headers are left out. What was found is
    `TableScan.dialect`.

    The type of a column of a file without types comes from its cells: integers,
    numbers, `true` and `false`, dates, times of day, else text. A cell is missing if it
    is empty or one of `NA`, `N/A`, `n/a`, `#N/A`, `NaN`, `nan`, `NULL`, `null`, quoted
    or not, also in text columns (`None` and `?` are text). Parquet and Arrow files
    store the types of their columns; in these files both NaN and null are missing. The
    unnamed index that pandas writes is dropped: in a Parquet or Arrow file the column
    `__index_level_0__`, in a CSV file or a workbook a first column without a name if it
    holds distinct integers from 0.

    Args:
        path: File to read.
        text_columns: Names of columns of a file without types that stay texts, even if
            their cells look like numbers. Names that the file lacks are ignored.
        sheet: Name of the sheet of a workbook; by default the first with rows.
        notify: Called with a message if an index is dropped, and with what was found
            unless the file is UTF-8 text with commas that begins with its header.

    Returns:
        The table, with at least one row and with unique, non-empty column names.

    Raises:
        TableError: The file is missing, empty, in an unknown encoding or damaged, has
            another suffix, has rows with more cells than the header, or has no sheets
            and `sheet` is given.

    Example:
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("name;height\nAda;1,65\nBob;NA\n")
    >>> read_table(path, notify=print).to_pylist()
    UTF-8 text, separated by semicolons, with decimal commas.
    [{'name': 'Ada', 'height': 1.65}, {'name': 'Bob', 'height': None}]
    """
    return typed_table(read_cells(path, sheet=sheet, notify=notify), {*text_columns})


def read_cells(
    path: str | os.PathLike[str],
    *,
    sheet: str | None = None,
    notify: Callable[[str], object] | None = None,
) -> pa.Table:
    """Reads a table, with the cells of a file without types as they are written.

    A schema or a model reads it as a table in memory; see `read_table`.
    """
    scan = TableScan(path, sheet=sheet)
    batches: list[pa.RecordBatch] = scan.collect(list, list.append)
    if notify is not None:
        notify_of_reading(scan, notify)
    return pa.Table.from_batches(batches)


def notify_of_reading(scan: TableScan, notify: Callable[[str], object]) -> None:
    """Tells what reading a file has found, as `read_table` does."""
    if scan.dialect is not None and not scan.dialect.is_plain:
        notify(scan.dialect.describe())
    if scan.without_index:
        notify(
            "The first column has no name and counts the rows, as an index of pandas "
            "or R does, and is left out: give it a name to keep it."
        )
