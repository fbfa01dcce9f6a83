"""What programs leave in files: an index of pandas, blank rows of spreadsheets."""

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.tables.values import are_texts

_NAMED = re.compile(r"__index_level_\d+__")


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


def row_numbers(texts: pa.Array) -> np.ndarray | None:
    """Returns texts as the row numbers of a frame; None if they cannot be these."""
    try:
        numbers: np.ndarray = texts.drop_null().cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    return None if texts.null_count or (numbers < 0).any() else numbers


class BlankEnd:
    """Leaves out rows without a value that no other row follows.

    Rows of a single column are all kept, and so are the rows of a table without values.
    """

    def __init__(self) -> None:
        self.num_rows = 0

    def without(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the batches without their blank end."""
        held: list[pa.RecordBatch] = []
        has_values = False
        for batch in batches:
            kept = _count_without_end(batch)
            if not kept:
                held.append(batch)
                continue
            has_values = True
            yield from held
            held = []
            yield batch.slice(0, kept)
            if kept < batch.num_rows:
                held = [batch.slice(kept)]
        if has_values:
            self.num_rows = sum(batch.num_rows for batch in held)
        else:
            yield from held

    def describe(self) -> list[str]:
        """Returns a sentence that counts the rows, if there are any."""
        if not self.num_rows:
            return []
        if self.num_rows == 1:
            return [
                "The last row, without values, is left out: to keep it, fill a cell."
            ]
        return [
            f"The last {self.num_rows} rows, without values, are left out; fill a "
            "cell of the last to keep them."
        ]


def _count_without_end(batch: pa.RecordBatch) -> int:
    """Returns the number of rows up to the last one with a value."""
    last = batch.slice(max(batch.num_rows - 1, 0))
    if batch.num_columns < 2 or not _are_blank(last).to_numpy(False).all():
        return int(batch.num_rows)
    blank = _are_blank(batch).to_numpy(zero_copy_only=False)
    return int(blank.size - blank[::-1].argmin()) if not blank.all() else 0


def _are_blank(batch: pa.RecordBatch) -> pa.Array:
    """Returns which rows have no value."""
    blank = pa.array([True] * batch.num_rows, pa.bool_())
    for column in batch.columns:
        missing = pc.is_null(column, nan_is_null=True)
        if are_texts(column.type):
            empty = pc.equal(pc.utf8_trim_whitespace(column), "")
            missing = pc.or_(missing, pc.fill_null(empty, True))
        blank = pc.and_(blank, missing)
    return blank
