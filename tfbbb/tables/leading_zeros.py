"""Finds columns of codes, such as 01569, which whole numbers would shorten."""

from collections.abc import Iterable
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_BLOCK_BYTES = 4 * 2**20
# No number is so long; a cell that begins before a block is read with it.
_LONGEST = 64
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
    starts = _table([*delimiter.encode(), *b'\r\n"'])
    digits = _table(b"0123456789")
    rest = b"\n"
    while block := file.read(_BLOCK_BYTES):
        if _has_code(rest + block, starts, digits):
            return True
        rest = (rest + block)[-_LONGEST:]
    return _has_code(rest + b"\n", starts, digits)


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


def _table(characters: Iterable[int]) -> np.ndarray:
    found = np.zeros(256, dtype=bool)
    found[list(characters)] = True
    return found


def _has_code(block: bytes, starts: np.ndarray, digits: np.ndarray) -> bool:
    bytes_ = np.frombuffer(block, np.uint8)
    zeros = np.flatnonzero(bytes_[1:-1] == ord("0")) + 1
    zeros = zeros[starts[bytes_[zeros - 1]]]
    places = zeros[digits[bytes_[zeros + 1]]] + 2
    for _ in range(_LONGEST):
        places = places[places < len(bytes_)]
        if not len(places):
            return False
        following = bytes_[places]
        if starts[following].any():
            return True
        places = places[digits[following]] + 1
    return False
