"""Finds columns of codes, such as 01569, which whole numbers would shorten."""

from collections.abc import Iterable
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# In the cache of a core, a block is searched five times as fast as a larger one.
_BLOCK_BYTES = 2**17
# No number is so long; a cell that begins before a block is read with it.
_LONGEST = 64
_NUM_DIGITS = 10
_CODE = r"^0\d+$"
_WHOLE = r"^ *[+-]?\d+ *$"


def may_have_codes(file: BinaryIO, delimiter: str) -> bool:
    r"""Whether a cell of a CSV file may consist of digits and begin with a zero.

    Example:
    >>> import io
    >>> may_have_codes(io.BytesIO(b"zip,when\n01569,2020-01-01\n"), ",")
    True
    >>> may_have_codes(io.BytesIO(b"share,when\n0.5,03:15\n0,01/02/2020\n"), ",")
    False
    """
    marks = delimiter.encode() + b'\r\n"'
    rest = b"\n"
    while block := file.read(_BLOCK_BYTES):
        if _has_code(rest + block, marks):
            return True
        rest = (rest + block)[-_LONGEST:]
    return _has_code(rest + b"\n", marks)


def find_codes(batches: Iterable[pa.RecordBatch]) -> set[str]:
    """Returns the columns of whole numbers of which some begin with a zero.

    Args:
        batches: The rows, all columns as text.
    """
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


def _has_code(block: bytes, marks: bytes) -> bool:
    """Whether a zero and further digits stand between two of the marks."""
    cells = np.frombuffer(block, np.uint8)
    before = cells[:-2]
    begins = before == marks[0]
    for mark in marks[1:]:
        begins |= before == mark
    begins &= cells[1:-1] == ord("0")
    # Other characters than digits are out of range, as the difference is unsigned.
    begins &= cells[2:] - np.uint8(ord("0")) < _NUM_DIGITS
    places = np.flatnonzero(begins) + 3
    for _ in range(_LONGEST):
        places = places[places < len(cells)]
        if not len(places):
            return False
        following = cells[places]
        if np.isin(following, list(marks)).any():
            return True
        places = places[following - np.uint8(ord("0")) < _NUM_DIGITS] + 1
    return False
