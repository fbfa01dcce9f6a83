"""Recognises the format of a file by its first bytes."""

import json
import re
from collections.abc import Mapping
from typing import Literal, TypeVar

Format = Literal["csv", "csv.gz", "parquet", "arrow"]

T = TypeVar("T")

# The number of first bytes that `describe_content` reads.
BEGINNING_BYTES = 2**16

_FORMATS: dict[bytes, Format] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"\x1f\x8b": "csv.gz",
}
_OTHERS = {
    b"PK\x03\x04": "a ZIP archive, or a spreadsheet",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet",
    b"SQLite format 3\0": "an SQLite database",
    b"BZh91AY&SY": "data compressed with bzip2",
    b"\xfd7zXZ": "data compressed with xz",
    b"\x28\xb5\x2f\xfd": "data compressed with zstd",
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
_IN_FORMAT = {
    "parquet": "Parquet",
    "arrow": "Arrow IPC",
    "csv.gz": "data compressed with gzip",
}
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_MARKUP = re.compile(r"<(?:(!doctype html|html)|\?xml)\b", re.IGNORECASE)
_JSON_OBJECT = re.compile(r'(?:\[\s*)?\{\s*"(?:[^"\\]|\\.)*"\s*:')


def table_format(beginning: bytes) -> Format | None:
    """Returns the format of a table, or None for CSV and everything else.

    Args:
        beginning: The first 16 bytes of the file, or more.
    """
    return _by_magic(_FORMATS, beginning)


def other_format(beginning: bytes) -> str | None:
    """Describes a file that is not a table, or returns None if it may be one.

    Args:
        beginning: The first 16 bytes of the file, or more.
    """
    return _by_magic(_OTHERS, beginning)


def describe_content(beginning: bytes) -> str | None:
    r"""Describes the content of a file that is not CSV.

    Args:
        beginning: The first `BEGINNING_BYTES` of the file.

    Returns:
        A description, or None if the file may be CSV.

    Example:

    >>> describe_content(b'{"age": 36}\n{"age": 41}\n')
    'JSON'
    >>> describe_content(b'"{age}","[mg]"\n36,1\n') is None
    True
    """
    if found := table_format(beginning):
        return _IN_FORMAT[found]
    if what := other_format(beginning):
        return what
    if beginning[257:262] == b"ustar":
        return "a tar archive"
    text = beginning.decode("utf-8-sig", errors="ignore").lstrip()
    if markup := _MARKUP.match(text):
        return "an HTML page" if markup[1] else "XML"
    is_whole = len(beginning) < BEGINNING_BYTES
    return "JSON" if _is_json(text, is_whole=is_whole) else None


def _by_magic(known: Mapping[bytes, T], beginning: bytes) -> T | None:
    for magic, what in known.items():
        # The header of a CSV file may begin with these letters, as ORCID does with ORC,
        # but has no control characters.
        is_binary = not magic.isalnum() or _CONTROL.search(beginning[:16])
        if beginning.startswith(magic) and is_binary:
            return what
    return None


def _is_json(text: str, *, is_whole: bool) -> bool:
    """Whether a text begins with JSON values that are objects or arrays."""
    if text[:1] not in ("{", "["):
        return False
    if _JSON_OBJECT.match(text):
        return True
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except RecursionError:
        return True
    except json.JSONDecodeError as error:
        # More than half of the text is JSON, and the rest of the file is not here.
        return not is_whole and error.pos > len(text) // 2
    # JSON lines have one value per line. Cells follow a CSV header such as [1].
    rest = text[end:]
    following = rest.lstrip()
    return not following or (rest[0] in "\r\n" and following[0] in "{[")
