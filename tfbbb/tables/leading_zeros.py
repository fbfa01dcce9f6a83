"""Finds columns of codes, such as 01569, which whole numbers would shorten."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# In the cache of a core, a chunk is searched five times as fast as a larger one.
CHUNK_BYTES = 2**17
# No number is so long; a cell that begins before a chunk is read with it.
_LONGEST = 64
_ZERO = np.uint8(ord("0"))
_NUM_DIGITS = 10
_CODE = r"^0\d+$"
_WHOLE = r"^ *[+-]?\d+ *$"


class PossibleCodes(Exception):
    """A cell consists of digits and begins with a zero."""


def cut_chunks(block: memoryview | bytes) -> Iterator[memoryview]:
    """Yields the bytes of a block in chunks in which codes are searched fast."""
    for start in range(0, len(block), CHUNK_BYTES):
        yield memoryview(block)[start : start + CHUNK_BYTES]


def check_no_codes(chunks: Iterable[bytes | memoryview], delimiter: str) -> None:
    r"""Checks that no cell of a CSV file consists of digits and begins with a zero.

    Example:
    >>> check_no_codes([b"share,when\n0.5,03:15\n0,01/02/2020\n"], ",")
    >>> check_no_codes([b"zip,when\n01569,2020-01-01\n"], ",")
    Traceback (most recent call last):
    ...
    tfbbb.tables.leading_zeros.PossibleCodes
    """
    marks = np.zeros(256, bool)
    marks[list(delimiter.encode() + b'\r\n"')] = True
    rest = b"\n"
    for chunk in chunks:
        cells = rest + chunk
        if _has_code(cells, marks):
            raise PossibleCodes
        rest = cells[-_LONGEST:]
    if _has_code(rest + b"\n", marks):
        raise PossibleCodes


def find_codes(batches: Iterable[pa.RecordBatch]) -> set[str]:
    """Returns the columns of whole numbers of which some begin with a zero."""
    codes: set[str] = set()
    others: set[str] = set()
    for batch in batches:
        for field, column in zip(batch.schema, batch.columns, strict=True):
            if field.name in others:
                continue
            if not pc.all(pc.match_substring_regex(column, _WHOLE)).as_py() and len(
                column.drop_null()
            ):
                others.add(field.name)
            elif pc.any(pc.match_substring_regex(column, _CODE)).as_py():
                codes.add(field.name)
    return codes - others


def _has_code(text: bytes, marks: np.ndarray) -> bool:
    """Whether a zero and further digits stand between two of the marks `[256]`."""
    cells = np.frombuffer(text, np.uint8)
    zeros = cells[1:-1] == _ZERO
    # Other characters than digits are out of range, as the difference is unsigned.
    zeros &= cells[2:] - _ZERO < _NUM_DIGITS
    # Most zeros are inside a number: after a digit, or after the "." before them.
    zeros &= cells[:-2] - np.uint8(ord(".")) > ord("9") - ord(".")
    places = np.flatnonzero(zeros)
    places = places[marks[cells[places]]] + 3
    for _ in range(_LONGEST):
        places = places[places < len(cells)]
        if not len(places):
            return False
        if marks[cells[places]].any():
            return True
        places = places[cells[places] - _ZERO < _NUM_DIGITS] + 1
    return False
