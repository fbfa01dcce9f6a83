"""Writes Arrow tables to CSV and Parquet files."""

import csv
import io
import os
import tempfile
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet

from tfbbb.data.table_error import TableError

_SUFFIXES = (".csv", ".parquet")
_ROWS_AT_ONCE = 65536


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raises a `TableError` unless `write_table` could write to `path`."""
    path = Path(path)
    if path.suffix.lower() not in _SUFFIXES:
        raise TableError(
            f"{path} has an unknown format: its name must end in "
            f"{' or '.join(_SUFFIXES)}."
        )
    if path.is_dir():
        raise TableError(f"{path} is a directory, not a file.")
    if not path.absolute().parent.is_dir():
        raise TableError(f"{path} cannot be written: there is no such directory.")


def write_table(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Writes a `.csv` or `.parquet` file.

    The write is atomic: it goes to a temporary file in the same directory, which then
    replaces `path`.

    Args:
        table: Table to write.
        path: File to write; an existing file is replaced.

    Raises:
        TableError: The suffix is another, or the directory does not exist.

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
            if path.suffix.lower() == ".parquet":
                pa.parquet.write_table(table, file)
            else:
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


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
