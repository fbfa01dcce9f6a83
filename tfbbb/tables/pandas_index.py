"""Recognises and drops the index column that pandas writes into files."""

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

_NAMED = re.compile(r"__index_level_\d+__")
_LIMIT = 2**30


def without_index(batch: pa.RecordBatch, *, unnamed: bool) -> pa.RecordBatch:
    """Drops the index columns."""
    names = batch.schema.names
    if unnamed:
        return (
            batch.select(list(range(1, len(names))))
            if may_begin_with_index(names)
            else batch
        )
    kept = [place for place, name in enumerate(names) if not _NAMED.fullmatch(name)]
    return batch if len(kept) == len(names) else batch.select(kept)


def may_begin_with_index(names: Sequence[str]) -> bool:
    """Whether the first column has no name and all other columns have one."""
    unnamed = [place for place, name in enumerate(names) if not name.strip()]
    return unnamed == [0] and len(names) > 1


class RowNumbers:
    """Decides whether a column of texts can be the row numbers of a frame.

    Row numbers are distinct integers from 0 to below 2^30. They may have gaps and any
    order, as in a frame whose rows were filtered or shuffled. Stores a bit per number.
    """

    def __init__(self) -> None:
        self._seen = np.zeros(1024, np.uint8)

    def add(self, values: pa.Array) -> bool:
        """Adds the next values; returns whether all values can be row numbers."""
        if not len(values):
            return True
        if values.null_count:
            return False
        try:
            numbers = np.sort(values.cast(pa.int64()).to_numpy())
        except pa.ArrowInvalid:
            return False
        if numbers[0] < 0 or numbers[-1] >= _LIMIT or (np.diff(numbers) == 0).any():
            return False
        places, bits = numbers >> 3, (1 << (numbers & 7)).astype(np.uint8)
        if places[-1] >= len(self._seen):
            size = max(2 * len(self._seen), int(places[-1]) + 1)
            self._seen = np.pad(self._seen, (0, size - len(self._seen)))
        if (self._seen[places] & bits).any():
            return False
        np.bitwise_or.at(self._seen, places, bits)
        return True
