"""Parses blocks of rows of a CSV file in parallel."""

import csv
import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from tfbbb.tables.csv_rows import Row
from tfbbb.tables.dialect import Dialect
from tfbbb.tables.text_encoding import CsvSource

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Parses whole rows; the first of a file begin with its header.
ParseBlock = Callable[[Dialect, memoryview | bytes, bool], pa.RecordBatch]
Block = TypeVar("Block")


class UncertainRows(Exception):
    """A block may end inside a row."""


@dataclass(frozen=True)
class _Block:
    """Whole rows at the beginning of a buffer."""

    buffer: bytearray
    end: int

    @property
    def rows(self) -> memoryview:
        return memoryview(self.buffer)[: self.end]

    @property
    def has_quotes(self) -> bool:
        return self.buffer.find(b'"', 0, self.end) >= 0


def parse_blocks(
    blocks: Iterable[Block], parse: Callable[[Block, bool], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yields blocks as batches, in their order; threads parse several at a time."""
    with ThreadPoolExecutor(pa.cpu_count()) as threads:
        pending: deque[Future[pa.RecordBatch]] = deque()
        try:
            for place, block in enumerate(blocks):
                pending.append(threads.submit(parse, block, place == 0))
                if len(pending) > pa.cpu_count():
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


class CsvBlocks:
    """The batches of a CSV file in UTF-8.

    Arrow's streaming reader parses one block after the other. This class cuts a file
    into blocks of whole rows: a line break ends a row if an even number of quotes is
    before it. A quote inside a cell without quotes, as in `5" pipe`, may spoil the
    count. If a block then ends inside a cell with quotes, this cell ends with the line
    break at the end of the block, or the block cannot be parsed: both raise
    `UncertainRows`.
    """

    def __init__(self, source: CsvSource, dialect: Dialect, parse: ParseBlock) -> None:
        self._source = source
        self._dialect = dialect
        self._parse_rows = parse
        # Buffers that no block uses: new memory costs as much time as reading a file.
        self._unused: list[bytearray] = []

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yields the batches in the order of the file."""
        yield from parse_blocks(self._cut(), self._parse)

    def _parse(self, block: _Block, is_first: bool) -> pa.RecordBatch:
        """Parses a block; raises `UncertainRows` if it may end inside a row."""
        try:
            batch = self._parse_rows(self._dialect, block.rows, is_first)
        except pa.ArrowInvalid as error:
            # The first block may hold nothing but the header.
            is_empty = is_first and "Empty CSV" in str(error)
            is_half = block.has_quotes and not _has_whole_rows(
                block, self._dialect.delimiter
            )
            if is_empty or is_half:
                raise UncertainRows from None
            raise
        if block.has_quotes and _ends_with_line_break(batch):
            raise UncertainRows
        self._unused.append(block.buffer)
        return batch

    def _cut(self) -> Iterator[_Block]:
        """Yields blocks of whole rows, each of at most `longest` bytes of a source."""
        source, dialect, rest = self._source, self._dialect, b""
        is_first, is_last = True, False
        with source.open_as_utf8(
            dialect.encoding, is_damaged=dialect.is_damaged
        ) as file:
            while not is_last:
                unused = self._unused
                buffer = unused.pop() if unused else bytearray(source.longest)
                buffer[: len(rest)] = rest
                size = len(rest) + file.readinto(memoryview(buffer)[len(rest) :])
                is_last = size < len(buffer)
                end = size if is_last else _end_of_rows(buffer)
                has_mark = buffer.startswith(_BYTE_ORDER_MARK, 0, end)
                # A row may be longer than a block, or begin with a byte order mark.
                if (not end and not is_last) or (has_mark and not is_first):
                    raise UncertainRows
                rest = bytes(memoryview(buffer)[end:size])
                if not _is_blank(buffer, end):
                    yield _Block(buffer, end)
                is_first = False


def write_blocks(rows: Iterable[Row], size: int) -> Iterator[bytes]:
    """Writes rows that Python has parsed in UTF-8 with commas, without a header."""
    text = io.StringIO()
    # Quotes cells with either of these.
    writer = csv.writer(text, lineterminator="\r\n")
    is_first = True
    for row in rows:
        writer.writerow(row.cells)
        if text.tell() >= size:
            yield text.getvalue().encode()
            text.seek(0)
            text.truncate()
            is_first = False
    if text.tell() or is_first:
        yield text.getvalue().encode()


def _end_of_rows(block: bytearray) -> int:
    """Returns the end of the last line break after an even number of quotes, or 0."""
    # `bytearray.count` takes ten times as long.
    quotes = np.count_nonzero(np.frombuffer(block, np.uint8) == ord('"'))
    end = len(block)
    while (place := block.rfind(b"\n", 0, end)) >= 0:
        quotes -= block.count(b'"', place, end)
        if quotes % 2 == 0:
            return place + 1
        end = place
    return 0


def _is_blank(block: bytearray, end: int) -> bool:
    begins_blank = end == 0 or block[0] in b"\r\n"
    return begins_blank and not block[:end].strip(b"\r\n")


def _ends_with_line_break(batch: pa.RecordBatch) -> bool:
    """Whether the last cell ends with a line break, as half a cell does."""
    last = batch.column(batch.num_columns - 1)
    return bool(len(last)) and (last[-1].as_py() or "").endswith("\n")


def _has_whole_rows(block: _Block, delimiter: str) -> bool:
    text = io.StringIO(str(block.rows, "utf-8", errors="replace"), newline="")
    try:
        deque(csv.reader(text, delimiter=delimiter, strict=True), maxlen=0)
    except csv.Error:
        return False
    return True
