"""Reading CSV and Parquet files into Arrow tables."""

import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from tfbbb.data.column_names import check_column_names
from tfbbb.data.table_error import TableError

_SUFFIXES = (".csv", ".csv.gz", ".parquet")
_MISSING = (
    *("", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A"),
    *("NaN", "nan", "-NaN", "-nan", "NULL", "null"),
)


def read_table(
    path: str | os.PathLike[str],
    *,
    text_columns: Iterable[str] = (),
    notify: Callable[[str], object] | None = None,
) -> pa.Table:
    r"""Reads a `.csv`, `.csv.gz` or `.parquet` file.

    A CSV file is UTF-8 text, separated by commas, with one header line. The
    type of a column comes from its cells: whole numbers, numbers, `true` and
    `false`, dates, else text. A cell is missing when it is empty or one of `NA`,
    `N/A`, `n/a`, `#N/A`, `NaN`, `nan`, `NULL`, `null`, quoted or not, in text
    columns too (`None` and `?` are text). A Parquet file brings its types along;
    there, NaN is missing as null is. The unnamed index that pandas writes is left
    out: `__index_level_0__` of a Parquet file; of a CSV file a first column without
    a name, if it holds distinct whole numbers from 0.

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
    path = Path(path)
    suffix = next((s for s in _SUFFIXES if path.name.lower().endswith(s)), None)
    if suffix is None:
        raise TableError(
            f"{path} is not a table this reads: its name must end in "
            f"{', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}."
        )
    if not path.is_file():
        problem = "is a directory, not a file" if path.is_dir() else "does not exist"
        raise TableError(f"{path} {problem}.")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty.")
    try:
        if suffix == ".parquet":
            table = _read_parquet(path)
        else:
            table = _read_csv(path, text_columns)
    except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
        reason = str(error).splitlines()[0]
        raise TableError(f"{path} can't be read as {suffix[1:]}: {reason}") from error
    if index := _index_of_pandas(table, suffix):
        table = table.drop_columns(index)
        if notify is not None:
            notify("The unnamed index that pandas wrote into the table is left out.")
    check_column_names(table.column_names, where=f"{path}: ")
    if table.num_rows == 0:
        raise TableError(f"{path} has a header but no rows.")
    return table


def _read_parquet(path: Path) -> pa.Table:
    return pa.parquet.ParquetFile(path).read()


def _index_of_pandas(table: pa.Table, suffix: str) -> list[str]:
    """Returns the names of the columns that hold it."""
    names = table.column_names
    if suffix == ".parquet":
        name = re.compile(r"__index_level_\d+__")
        return [n for n in names if name.fullmatch(n)]
    unnamed = [place for place, name in enumerate(names) if not name.strip()]
    if unnamed != [0] or len(names) < 2 or not table.num_rows:
        return []
    first = table.column(0)
    if not pa.types.is_integer(first.type) or first.null_count:
        return []
    # A frame whose rows were filtered or shuffled has gaps and no order.
    distinct = pa.compute.count_distinct(first).as_py() == len(first)
    return names[:1] if distinct and pa.compute.min(first).as_py() >= 0 else []


def _read_csv(path: Path, text_columns: Iterable[str]) -> pa.Table:
    convert = pa.csv.ConvertOptions(
        # With a space too, as in "1, NA": numbers may follow a space as well.
        null_values=[*_MISSING, *(f" {word}" for word in _MISSING)],
        strings_can_be_null=True,
        column_types={name: pa.string() for name in text_columns},
    )
    parse = pa.csv.ParseOptions(newlines_in_values=True)
    compression = "gzip" if path.suffix.lower() == ".gz" else None
    try:
        with pa.input_stream(str(path), compression=compression) as stream:
            table = pa.csv.read_csv(
                stream, parse_options=parse, convert_options=convert
            )
        names, types = table.column_names, table.schema.types
    except (pa.ArrowInvalid, UnicodeDecodeError):
        _check_encoding(path)
        _check_rows(path)
        raise
    if any(pa.types.is_binary(type_) for type_ in types):
        _check_encoding(path)
    if _ends_inside_text(table):
        _check_rows(path)
    _check_separator(path, names)
    return table


def _check_separator(path: Path, header: Sequence[str]) -> None:
    if len(header) == 1 and (separator := re.search(r"[;\t|]", header[0])):
        raise TableError(
            f"{path} seems to be separated by {separator[0]!r}; separate its columns "
            "by commas."
        )


def _ends_inside_text(table: pa.Table) -> bool:
    """Whether the last cell holds a line break, as after an unclosed quote."""
    if not table.num_rows or not pa.types.is_string(table.column(-1).type):
        return False
    return "\n" in (table.column(-1)[-1].as_py() or "")


def _open(path: Path) -> gzip.GzipFile | io.BufferedReader:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def _check_encoding(path: Path) -> None:
    with _open(path) as lines:
        for number, line in enumerate(lines, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                raise TableError(
                    f"{path} is not UTF-8 text: line {number} can't be decoded; save "
                    "it with that encoding."
                ) from None


def _check_rows(path: Path) -> None:
    """Names the first line that doesn't have as many cells as the header."""
    with _open(path) as file:
        lines = csv.reader((line.decode("utf-8-sig") for line in file), strict=True)
        header: list[str] | None = None
        start = 1
        try:
            for row in lines:
                if row and header is None:
                    header = row
                    _check_separator(path, header)
                elif row and len(row) != len(header or ()):
                    raise TableError(
                        f"{path}: line {start} has {_count(row)}, but the header has "
                        f"{_count(header or [])}."
                    )
                start = lines.line_num + 1
        except csv.Error as error:
            raise TableError(f"{path}: line {start}: {error}.") from None
    if header is None:
        raise TableError(f"{path} is empty.")


def _count(row: list[str]) -> str:
    return "1 cell" if len(row) == 1 else f"{len(row)} cells"
