"""Writes Arrow tables to CSV, Parquet, Arrow, JSON lines and Excel files."""

import csv
import datetime
import importlib.util
import io
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from tfbbb.base.files import atomic_file
from tfbbb.tables.dialect import Dialect
from tfbbb.tables.format import WRITTEN_SUFFIX_LIST, Format, infer_format
from tfbbb.tables.table_error import TableError

_ROWS_AT_ONCE = 65536
_MOST_EXCEL_ROWS = 2**20 - 1


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raises a `TableError` unless `write_table` could write to `path`."""
    path = Path(path)
    format = infer_format(path, WRITTEN_SUFFIX_LIST)
    if format == "ods":
        raise TableError(
            f"{path} cannot be written: its name must end in {WRITTEN_SUFFIX_LIST}."
        )
    if format == "xlsx" and importlib.util.find_spec("xlsxwriter") is None:
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
    return infer_format(Path(path)) in ("parquet", "arrow")


def write_table(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Writes a table to a file, whole or not at all; its suffix is its format.

    The formats are those of `tfbbb.tables.read_table`, but `.ods`.
    """
    check_writable(path)
    with atomic_file(path) as file:
        # An Arrow file has one dictionary per column.
        rows = table.unify_dictionaries().to_reader(_ROWS_AT_ONCE)
        write_rows(rows, file, infer_format(Path(path)))


def write_rows(
    rows: pa.RecordBatchReader,
    file: BinaryIO,
    format: Format,
    dialect: Dialect | None = None,
) -> None:
    """Writes rows to a binary file, in the memory of one batch."""
    kind, _, compression = format.partition(".")
    if compression:
        codec = {"gz": "gzip", "zst": "zstd"}[compression]
        with pa.CompressedOutputStream(_LeftOpen(file), codec) as compressed:
            _write_csv(rows, compressed, kind, dialect)
        return
    match kind:
        case "csv" | "tsv":
            _write_csv(rows, file, kind, dialect)
        case "jsonl":
            write_json_lines(rows, file)
        case "parquet":
            with pa.parquet.ParquetWriter(file, rows.schema) as writer:
                for batch in rows:
                    writer.write_batch(batch)
        case "arrow":
            with pa.ipc.new_file(file, rows.schema) as writer:
                for batch in rows:
                    writer.write_batch(batch)
        case "xlsx":
            _write_excel(rows, file)
        case _:
            raise ValueError(f"`format` cannot be written. Received: {format!r}")


class _LeftOpen(io.RawIOBase):
    """A file that stays open when Arrow closes it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._file.write(data)


def write_csv(table: pa.Table, file: BinaryIO) -> None:
    """Writes CSV to a binary file, with quotes where needed; null is an empty cell."""
    _write_csv(table.to_reader(_ROWS_AT_ONCE), file, "csv", None)


def _write_csv(
    rows: pa.RecordBatchReader, file: BinaryIO, kind: str, dialect: Dialect | None
) -> None:
    dialect = dialect or Dialect(delimiter="\t" if kind == "tsv" else ",")
    # Spaces cannot show an empty cell.
    delimiter = "," if dialect.delimiter == " " else dialect.delimiter
    has_commas = dialect.decimal_mark == "," and delimiter != ","
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    if dialect.has_mark or dialect.encoding != "utf-8":
        text.write("\ufeff")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(rows.schema.names)
    for batch in rows:
        columns = [
            _as_texts(column, with_commas=has_commas) for column in batch.columns
        ]
        writer.writerows(zip(*columns, strict=True))
    # Leave the file open for the caller.
    text.detach()


def _as_texts(column: pa.Array, *, with_commas: bool) -> list[str | None]:
    texts = column.cast(pa.string())
    if with_commas and pa.types.is_floating(column.type):
        texts = pc.replace_substring(texts, ".", ",")
    found: list[str | None] = texts.to_pylist()
    return found


def write_json_lines(rows: pa.Table | pa.RecordBatchReader, file: BinaryIO) -> None:
    """Writes one JSON object per row; a number that is not finite becomes null."""
    names = rows.schema.names
    for row in _rows(rows):
        values = dict(zip(names, row, strict=True))
        file.write(orjson.dumps(values, default=str, option=orjson.OPT_APPEND_NEWLINE))


def _write_excel(rows: pa.RecordBatchReader, file: BinaryIO) -> None:
    from xlsxwriter import Workbook

    # Texts are data: a text that begins with `=` is no formula.
    texts = dict.fromkeys(("strings_to_formulas", "strings_to_urls"), False)
    options = {"constant_memory": True, "default_date_format": "yyyy-mm-dd", **texts}
    with Workbook(file, options) as workbook:
        sheet = workbook.add_worksheet()
        sheet.freeze_panes(1, 0)
        sheet.write_row(0, 0, rows.schema.names)
        for number, row in enumerate(_rows(rows), 1):
            if number > _MOST_EXCEL_ROWS:
                raise TableError(
                    f"An Excel sheet has at most {_MOST_EXCEL_ROWS} rows below its "
                    "header; write a .csv or .parquet file."
                )
            sheet.write_row(number, 0, [_as_cell(value) for value in row])


def _rows(rows: pa.Table | pa.RecordBatchReader) -> Iterator[tuple[object, ...]]:
    batches = rows.to_batches(_ROWS_AT_ONCE) if isinstance(rows, pa.Table) else rows
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _as_cell(value: object) -> object:
    """Returns a value that Excel has; others as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.isoformat()
    known = (bool, int, float, str, datetime.date, datetime.time, datetime.timedelta)
    return value if value is None or isinstance(value, known) else str(value)


# Of standard deviations and probabilities. More are noise of the draws.
_DIGITS = 5
# In the units of the target: as precise as its standard deviation.
_OF_TARGET = re.compile(r"(mean|lower|upper|quantile|sample)(_[-\d.e]+)*")
_MOST_DECIMALS = 300


def with_sensible_digits(table: pa.Table) -> pa.Table:
    """Rounds predictions for people to read."""
    columns = {}
    for name in table.column_names:
        column = table[name]
        if not pa.types.is_floating(column.type):
            columns[name] = column
            continue
        values = column.to_numpy().astype(np.float64)
        sizes = values
        if _OF_TARGET.fullmatch(name):
            of_one = f"std_{name.rpartition('_')[2]}"
            own = of_one if of_one in table.column_names else "std"
            sizes = np.asarray(table[own].to_numpy())
        elif name.startswith("probability_"):
            # 0.99987 has two digits that matter.
            sizes = np.minimum(values, 1.0 - values)
        rounded = _rounded(values, np.abs(sizes))
        columns[name] = pa.array(rounded, from_pandas=True)
    return pa.table(columns)


def _rounded(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Rounds each value to five significant digits of its size."""
    with np.errstate(all="ignore"):
        orders = np.floor(np.log10(sizes.astype(np.float64)))
        decimals = np.clip(_DIGITS - 1 - orders, -_MOST_DECIMALS, _MOST_DECIMALS)
        # Powers of ten are exact to 1e22, so that the quotient has the fewest digits.
        tens = 10.0 ** np.abs(decimals)
        up, down = np.round(values * tens) / tens, np.round(values / tens) * tens
        rounded = np.where(decimals < 0, down, up)
    return np.where(np.isfinite(orders) & np.isfinite(rounded), rounded, values)
