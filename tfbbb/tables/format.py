"""The formats of files that hold a table, and the suffixes of their names."""

from pathlib import Path
from typing import Literal, get_args

from tfbbb.tables.table_error import TableError

Format = Literal[
    "csv",
    "csv.gz",
    "csv.zst",
    "tsv",
    "tsv.gz",
    "tsv.zst",
    "jsonl",
    "parquet",
    "arrow",
    "xlsx",
    "ods",
]

FORMATS: tuple[Format, ...] = get_args(Format)

_COMPRESSED: dict[str, Format] = {"": "csv", ".gz": "csv.gz", ".zst": "csv.zst"}
# The format by the end of a name.
SUFFIXES: dict[str, Format] = {
    **{format: format for format in FORMATS},
    **{
        f"{suffix}{compression}": format
        for suffix in ("txt", "dat", "data")
        for compression, format in _COMPRESSED.items()
    },
    "tab": "tsv",
    "ndjson": "jsonl",
    "feather": "arrow",
}

# What a file of the format holds, as in "the file holds Parquet".
DESCRIPTIONS: dict[Format, str] = {
    "csv": "CSV",
    "csv.gz": "data compressed with gzip",
    "csv.zst": "data compressed with zstd",
    "tsv": "CSV",
    "tsv.gz": "data compressed with gzip",
    "tsv.zst": "data compressed with zstd",
    "jsonl": "JSON lines",
    "parquet": "Parquet",
    "arrow": "Arrow IPC",
    "xlsx": "an Excel workbook",
    "ods": "an OpenDocument spreadsheet",
}

# The suffixes for people, in the help of commands and in errors.
_ALL_BUT_WORKBOOKS = (
    ".csv, .tsv, .txt, .dat, .data (each also with .gz or .zst), .tab, .jsonl, "
    ".ndjson, .parquet, .arrow, .feather"
)
SUFFIX_LIST = f"{_ALL_BUT_WORKBOOKS}, .xlsx or .ods"
WRITTEN_SUFFIX_LIST = f"{_ALL_BUT_WORKBOOKS} or .xlsx"


def infer_format(path: Path, suffixes: str = SUFFIX_LIST) -> Format:
    """Returns the format by the suffix of a name.

    Example:
    >>> infer_format(Path("people.TXT.gz")), infer_format(Path("people.feather"))
    ('csv.gz', 'arrow')
    """
    for suffix, format in SUFFIXES.items():
        if path.name.lower().endswith(f".{suffix}"):
            return format
    raise TableError(f"{path} has an unknown format: its name must end in {suffixes}.")


def validate_format(format: str) -> Format:
    """Returns the format; raises `ValueError` unless it is known."""
    for known in FORMATS:
        if format == known:
            return known
    raise ValueError(
        f"`format` must be one of {', '.join(FORMATS)}. Received: format={format!r}"
    )
