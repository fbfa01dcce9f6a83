"""Rows at the end of a file that hold no value, as spreadsheets export them."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.tables.values import are_texts


class BlankEnd:
    """Leaves out rows without a value that no other row follows.

    Rows of a single column are all kept, and so are the rows of a table without values.

    Attributes:
        num_rows: Number of rows that were left out, after the last batch.

    Example:
    >>> rows = pa.record_batch({"a": [1, None, 2, None], "b": ["x", "", "y", " "]})
    >>> end = BlankEnd()
    >>> [batch.num_rows for batch in end.without([rows])], end.num_rows
    ([3], 1)
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
