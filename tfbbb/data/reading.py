"""Reading the file of a table into an Arrow table."""

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

    A CSV file is UTF-8 text, separated by commas, with one header line. The
    type of a column comes from its cells: whole numbers, numbers, `true` and
    `false`, dates, else text. A cell is missing when it is empty or one of `NA`,
    `N/A`, `n/a`, `#N/A`, `NaN`, `nan`, `NULL`, `null`, quoted or not, in text
    columns too (`None` and `?` are text). A Parquet file, and one of Arrow
    (IPC), brings its types along; there, NaN is missing as null is. The unnamed index
    that pandas writes is left out: `__index_level_0__` of a Parquet file; of a CSV
    file a first column without a name, if it holds distinct whole numbers from 0.

    Args:
        path: File to read.
        text_columns: Names of columns of a CSV file that are text whatever their
            cells look like (codes such as `007`). Names that the file lacks are
            ignored.
        notify: Called with a sentence where an index is left out.

    Returns:
        The table, with at least one row and with unique, non-empty column names.

    Raises:
        TableError: The file is missing, empty, not UTF-8, ragged, damaged, has
            another suffix, or its header has empty or repeated names.

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
