"""Predicts the rows of a table, some at a time."""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from tfbbb.tables.scan import TableScan

# Predicts a block of rows, whole or in consecutive parts; also gets the index of the
# first row.
Ask = Callable[[pa.Table, int], Iterable[pa.Table]]


def predict_rows(scan: TableScan, ask: Ask) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yields the rows of a table in blocks, each with the table of its predictions."""
    first = 0
    for batch in scan.batches():
        block = pa.Table.from_batches([batch])
        at = 0
        for answers in ask(block, first):
            yield block.slice(at, answers.num_rows), answers
            at += answers.num_rows
        first += block.num_rows
