"""The index that pandas writes into the files of its frames."""

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

_NAMED = re.compile(r"__index_level_\d+__")
_LIMIT = 2**30


def without_index(batch: pa.RecordBatch, *, unnamed: bool) -> pa.RecordBatch:
    """Leaves out the columns of an index.

    Args:
        batch: Rows of a file.
        unnamed: Whether it is the column without a name, as in CSV files, or those
            that pandas names, as in others.
    """
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
    """Whether the first column, and no other, has no name, as in a CSV file."""
    unnamed = [place for place, name in enumerate(names) if not name.strip()]
    return unnamed == [0] and len(names) > 1


class RowNumbers:
    """Whether whole numbers number the rows of a frame.

    They do if they are distinct and at least 0, below 2^30: a frame whose rows were
    filtered or shuffled has gaps and no order. One bit is kept per number.
    """

    def __init__(self) -> None:
        self._seen = np.zeros(1024, np.uint8)

    def add(self, values: pa.Array) -> bool:
        """Takes in the next values, and returns whether they still may be."""
        if not len(values):
            return True
        if not pa.types.is_integer(values.type) or values.null_count:
            return False
        numbers = np.sort(values.to_numpy())
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
