"""The formats of files that hold a table, by the suffix of the name and by content."""

import codecs
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeVar, get_args

from tfbbb.tables.table_error import TableError

Format = Literal[
    "csv", "csv.gz", "csv.zst", "tsv", "tsv.gz", "tsv.zst", "jsonl", "parquet", "arrow",
    "xlsx", "ods",
]  # fmt: skip

FORMATS: tuple[Format, ...] = get_args(Format)

# The format by the end of a name.
_AS_CSV: tuple[Format, ...] = ("csv", "csv.gz", "csv.zst")
SUFFIXES: dict[str, Format] = {format: format for format in FORMATS}
SUFFIXES |= {"tab": "tsv", "ndjson": "jsonl", "feather": "arrow"}
for _suffix in ("txt", "dat", "data"):
    SUFFIXES |= {format.replace("csv", _suffix): format for format in _AS_CSV}

# What a file of the format holds, as in "the file holds Parquet".
_CONTENTS = {
    "gz": "data compressed with gzip",
    "zst": "data compressed with zstd",
    "csv": "CSV",
    "tsv": "CSV",
    "jsonl": "JSON lines",
    "parquet": "Parquet",
    "arrow": "Arrow IPC",
    "xlsx": "an Excel workbook",
    "ods": "an OpenDocument spreadsheet",
}
DESCRIPTIONS = {format: _CONTENTS[format.split(".")[-1]] for format in FORMATS}

# The suffixes for people, in the help of commands and in errors.
_ALL_BUT_WORKBOOKS = (
    ".csv, .tsv, .txt, .dat, .data (each also with .gz or .zst), .tab, .jsonl, "
    ".ndjson, .parquet, .arrow, .feather"
)
SUFFIX_LIST = f"{_ALL_BUT_WORKBOOKS}, .xlsx or .ods"
WRITTEN_SUFFIX_LIST = f"{_ALL_BUT_WORKBOOKS} or .xlsx"


def infer_format(path: Path, suffixes: str = SUFFIX_LIST) -> Format:
    """Returns the format by the suffix of a name."""
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


T = TypeVar("T")

# The number of first bytes that show the format.
BEGINNING_BYTES = 2**16

_FORMATS: dict[bytes, Format] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"\x1f\x8b": "csv.gz",
    b"\x28\xb5\x2f\xfd": "csv.zst",
}
_ZIP = b"PK\x03\x04"
# Where a ZIP archive has the name and the content of its first file.
_FIRST_NAME = 30
_ODS = b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet"
# Names of files in a workbook, in whatever folder and order they were written.
_XLSX = (b"[Content_Types].xml", b"_rels/", b"docProps/", b"xl/", b"customXml/")
_WORKBOOK_PART = re.compile(rb"(workbook|sharedStrings|sheet\d*|styles)\.(xml|bin)")
_OTHERS = {
    b"\xd0\xcf\x11\xe0": "an old spreadsheet, or one with a password",
    b"SQLite format 3\0": "an SQLite database",
    b"BZh91AY&SY": "data compressed with bzip2",
    b"\xfd7zXZ": "data compressed with xz",
    b"%PDF-": "a PDF document",
    b"{\\rtf": "an RTF document",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy array",
    b"\x80\x04\x95": "a Python pickle",
    b"\x80\x05\x95": "a Python pickle",
    b"FEA1": "a Feather file of version 1",
    b"Obj\x01": "an Avro file",
    b"ORC": "an ORC file",
}
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_MARKUP = re.compile(r"<(?:(!doctype html|html)|\?xml)\b", re.IGNORECASE)
_JSON_OBJECT = re.compile(r'(?:\[\s*)?\{\s*"(?:[^"\\]|\\.)*"\s*:')


def table_format(beginning: bytes) -> Format | None:
    """Returns the format of a table, or None for CSV and everything else."""
    if beginning.startswith(_ZIP):
        names = beginning[_FIRST_NAME:]
        if names.startswith(_ODS):
            return "ods"
        is_workbook = names.startswith(_XLSX) or _WORKBOOK_PART.search(beginning)
        return "xlsx" if is_workbook else None
    if found := _by_magic(_FORMATS, beginning):
        return found
    return "jsonl" if _is_json_lines(_decode(beginning)) else None


def other_format(beginning: bytes) -> str | None:
    """Describes a file that is not a table, or returns None if it may be one."""
    if beginning.startswith(_ZIP) and not table_format(beginning):
        return "a ZIP archive"
    return _by_magic(_OTHERS, beginning)


def _describe_text(beginning: bytes) -> str | None:
    """Describes a file of another format than a table, by its text."""
    if beginning[257:262] == b"ustar":
        return "a tar archive"
    text = _decode(beginning)
    if markup := _MARKUP.match(text):
        return "an HTML page" if markup[1] else "XML"
    return "JSON" if _JSON_OBJECT.match(text) else None


def check_content(
    path: Path, beginning: bytes, format: Format, *, is_named_so: bool = True
) -> None:
    """Checks that the content of a file is that of its format."""
    found = table_format(beginning)
    what = DESCRIPTIONS[found] if found else other_format(beginning)
    if format == "csv":
        what = what or _describe_text(beginning)
    if what is None or found == format:
        return
    advice = "save the table as CSV or Parquet."
    if found and is_named_so:
        advice = f"rename the file to a name that ends in .{found}."
    raise TableError(f"{path} holds {what}, not {DESCRIPTIONS[format]}; {advice}")


def _decode(beginning: bytes) -> str:
    is_utf16 = beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = beginning.decode("utf-16" if is_utf16 else "utf-8", errors="ignore")
    return text.lstrip("\ufeff").lstrip()


def _by_magic(known: Mapping[bytes, T], beginning: bytes) -> T | None:
    for magic, what in known.items():
        # The header of a CSV file may begin with these letters, as ORCID does with ORC,
        # but has no control characters.
        is_binary = not magic.isalnum() or _CONTROL.search(beginning[:16])
        if beginning.startswith(magic) and is_binary:
            return what
    return None


def _is_json_lines(text: str) -> bool:
    """Whether a text begins with a line that holds a JSON object."""
    line, *others = text.split("\n", 1)
    following = others[0].lstrip()[:1] if others else ""
    if not _JSON_OBJECT.match(line) or line.startswith("["):
        return False
    try:
        values = json.loads(line).values()
    except (json.JSONDecodeError, RecursionError):
        # A line that is longer than the beginning of the file may be an object.
        return not others and len(text) > BEGINNING_BYTES // 4
    # A single object may also hold a table as a whole.
    is_row = not any(isinstance(value, dict | list) for value in values)
    return following == "{" or (not following and is_row)
