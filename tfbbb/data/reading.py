"""Reads a file into an Arrow table."""

import os
from collections.abc import Callable, Iterable

import pyarrow as pa

from tfbbb.data.scan import TableScan


def read_table(
    path: str | os.PathLike[str],
    *,
    text_columns: Iterable[str] = (),
    notify: Callable[[str], object] | None = None,
) -> pa.Table:
    r"""Reads a `.csv`, `.csv.gz`, `.parquet` or `.arrow` file.

    A CSV file must be UTF-8 text with commas as separators and one header line. The
    type of a column comes from its cells: integers, numbers, `true` and `false`,
    dates, else text. A cell is missing if it is empty or one of `NA`, `N/A`, `n/a`,
    `#N/A`, `NaN`, `nan`, `NULL`, `null`, quoted or not, also in text columns (`None`
    and `?` are text). Parquet and Arrow (IPC) files store the types of their columns;
    in these files both NaN and null are missing. The unnamed index that pandas writes
    is dropped: in a Parquet or Arrow file the column `__index_level_0__`, in a CSV file
    a first column without a name if it holds distinct integers from 0.

    Args:
        path: File to read.
        text_columns: Names of columns of a CSV file to read as text, even if their
            cells look like numbers (codes such as `007`). Names that the file lacks
            are ignored.
        notify: Called with a message if an index is dropped.

    Returns:
        The table, with at least one row and with unique, non-empty column names.

    Raises:
        TableError: The file is missing, empty, not UTF-8, ragged or damaged, has
            another suffix, or has empty or repeated column names.

    Example:
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("name,age\nAda,36\nBob,NA\n")
    >>> read_table(path).to_pylist()
    [{'name': 'Ada', 'age': 36}, {'name': 'Bob', 'age': None}]
    """
    scan = TableScan(path, text_columns=text_columns)
    batches: list[pa.RecordBatch] = scan.collect(list, list.append)
    if scan.without_index and notify is not None:
        notify("The unnamed index that pandas wrote into the table is left out.")
    return pa.Table.from_batches(batches)
