"""Finds the encoding of a text file: UTF-8, UTF-16 or Windows-1252."""

import codecs
import re
from typing import TypeAlias

from tfbbb.tables.csv_source import CsvSource
from tfbbb.tables.table_error import TableError

# The name of a codec of Python.
Encoding: TypeAlias = str

_NAMES = {
    "utf-8": "UTF-8",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "cp1252": "Windows-1252 (Western European)",
}

_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# The characters of UTF-8 with more than one byte.
_MULTIBYTE = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
# Bytes that Windows-1252 lacks, and control characters that texts lack.
_NOT_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d\x00-\x08\x0e-\x1f\x7f]")
_LETTERS = re.compile(rb"[\x8a\x8c\x8e\x9a\x9c\x9e\x9f\xc0-\xd6\xd8-\xf6\xf8-\xff]{3,}")
_FEWEST_LETTERS = 20
_ESCAPED = re.compile("[\udc80-\udcff]")


def name_encoding(encoding: Encoding) -> str:
    """Returns the name of an encoding for people."""
    return _NAMES[encoding]


def find_encoding(source: CsvSource) -> Encoding:
    """Returns the encoding by the beginning of a file.

    A file without a byte order mark is UTF-8 if its beginning is. The rest of the file
    may show that it is Windows-1252: see `find_single_byte_encoding`.

    Raises:
        TableError: The text is in another encoding.
    """
    beginning = source.beginning()
    if beginning.startswith(_UTF_32):
        raise TableError(f"{source.path} is UTF-32 text; save it as UTF-8.")
    if beginning.startswith(_UTF_16):
        return "utf-16"
    try:
        # The last character may be cut.
        codecs.getincrementaldecoder("utf-8")().decode(beginning)
    except UnicodeDecodeError:
        return find_single_byte_encoding(source)
    return "utf-8"


def find_single_byte_encoding(source: CsvSource) -> Encoding:
    """Returns the encoding of a file that is not UTF-8, from all of its bytes.

    Windows-1252 contains the printable characters of Latin-1.

    Raises:
        TableError: The file is damaged UTF-8, or text in another encoding. The message
            names the first line that is not UTF-8.
    """
    if source.beginning().startswith(codecs.BOM_UTF8):
        raise _not_utf8(source)
    characters = others = letters = 0
    with source.open() as file:
        while line := file.readline(source.longest):
            if line.isascii():
                continue
            if _NOT_CP1252.search(line):
                raise _not_utf8(source)
            in_utf8 = _MULTIBYTE.findall(line)
            characters += len(in_utf8)
            others += len(_NOT_ASCII.findall(line)) - sum(map(len, in_utf8))
            letters += sum(map(len, _LETTERS.findall(line)))
    # Both encodings in one file, or UTF-8 with a few damaged bytes. A text in
    # Windows-1252 has such characters by chance, as in "groß«".
    if 4 * characters > others:
        raise _not_utf8(source)
    # Words of Western European languages have few accents in a row, but all letters of
    # a Cyrillic or Greek word are beyond ASCII.
    if letters >= _FEWEST_LETTERS and 2 * letters > others:
        raise TableError(
            f"{source.path} is neither UTF-8 text nor, by its letters, "
            f"{_NAMES['cp1252']} text; save it as UTF-8."
        )
    return "cp1252"


def check_encoding(source: CsvSource, encoding: Encoding) -> None:
    """Raises a `TableError` that names the first line in another encoding."""
    lines = source.lines(encoding, errors="surrogateescape")
    number = 0
    try:
        for number, line in enumerate(lines, start=1):
            if _ESCAPED.search(line):
                raise _wrong_encoding(source, encoding, number, "cannot be decoded")
            if "\0" in line:
                fault = "has a NUL character, as UTF-16 does"
                raise _wrong_encoding(source, encoding, number, fault)
    except UnicodeDecodeError:
        # Half a character of UTF-16 at the end of the file.
        fault = "cannot be decoded"
        raise _wrong_encoding(source, encoding, number + 1, fault) from None


def _wrong_encoding(
    source: CsvSource, encoding: Encoding, number: int, fault: str
) -> TableError:
    return TableError(
        f"{source.path} is not {name_encoding(encoding)} text: line {number} {fault}; "
        "save it as UTF-8."
    )


def _not_utf8(source: CsvSource) -> TableError:
    try:
        check_encoding(source, "utf-8")
    except TableError as error:
        return error
    return TableError(f"{source.path} is not UTF-8 text; save it as UTF-8.")
