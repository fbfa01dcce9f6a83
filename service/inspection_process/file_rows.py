"""Hands the rows of a file to the API, which predicts them.

Writes them with their predictions into a file of the same format. Runs under limits, as
a hostile file may exhaust the memory or time of its reader, or crash it.
`service.shared.file_rows` has the messages.
"""

import os
import sys
from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa

from service.inspection_process.limits import apply_limits, hide_pandas
from service.inspection_process.predicted_file import PredictedFile
from service.shared.file_rows import FileTask
from service.shared.frames import Frame, receive
from tfbbb.tables import TableError
from tfbbb.tables.plain_values import typed_table
from tfbbb.tables.predict_rows import predict_rows
from tfbbb.tables.scan import TableScan

_MOST_ROWS = 2000
_MOST_BYTES = 2**19


def main() -> None:
    """Works on one task from standard input; writes frames to standard output."""
    hide_pandas()
    # What a library prints must not get among the frames.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    first = receive(sys.stdin.buffer)
    if first is None:
        return
    task = FileTask.model_validate(first.header)
    apply_limits(task.limits, most_written_bytes=task.limits.decompressed_bytes)
    pipe = _Pipe(sys.stdin.buffer, output)
    try:
        pipe.send(_work(task, pipe))
    except TableError as error:
        message = str(error).replace(str(task.path), task.name)
        pipe.send(Frame({"error": message[:2000]}))
    except (MemoryError, pa.ArrowMemoryError):
        sys.exit("out of memory")


class _Pipe:
    """The pipes to the API."""

    def __init__(self, given: BinaryIO, output: BinaryIO) -> None:
        self._given, self._output = given, output

    def send(self, frame: Frame) -> None:
        self._output.write(frame.head() + frame.body)
        self._output.flush()

    def ask(self, block: pa.Table, first: int, of: int) -> Iterator[pa.Table]:
        """Yields the answers to a block, which is halved while it is too large."""
        size = block.num_rows
        at = 0
        while at < block.num_rows:
            part = block.slice(at, size)
            done = first + at + part.num_rows
            header = {"rows": done, "first": first + at, "of": of}
            self.send(Frame(header, _as_stream(part)))
            answer = receive(self._given)
            if answer is None:
                # The API has ended, or nobody waits for the answer any more.
                sys.exit(0)
            if answer.header.get("smaller"):
                size = max(1, size // 2)
                continue
            at += part.num_rows
            with pa.ipc.open_stream(pa.py_buffer(answer.body)) as stream:
                yield stream.read_all()


def _work(task: FileTask, pipe: _Pipe) -> Frame:
    """Hands out the rows of the file; returns the last frame."""
    scan = TableScan(task.path, format=task.format)
    names = scan.schema.names
    if scan.num_rows > task.limits.rows:
        raise TableError(
            f"{task.path} may have at most {task.limits.rows} rows "
            f"(TFBBB_MAX_UPLOAD_ROWS). Received: {scan.num_rows}"
        )
    features = [name for name in task.features if name in names]
    if not features:
        raise TableError(
            f"{task.path} has none of the columns that the model reads: "
            f"{', '.join(map(repr, task.features[:20]))}. "
            f"Received: {', '.join(map(repr, names[:20]))}"
        )

    def ask(block: pa.Table, first: int) -> Iterator[pa.Table]:
        for part in _parts(typed_table(block.select(features), task.text_columns)):
            yield from pipe.ask(part, first, scan.num_rows)
            first += part.num_rows

    with PredictedFile(scan, task) as predicted:
        for _, answers in predict_rows(scan, ask):
            predicted.add(answers)
        shown = predicted.write()
    return Frame({"done": True}, shown.model_dump_json().encode())


def _parts(block: pa.Table) -> Iterator[pa.Table]:
    """Yields parts of a block that a request may hold."""
    per_row = max(1, block.nbytes // block.num_rows)
    size = max(1, min(_MOST_ROWS, _MOST_BYTES // per_row))
    for start in range(0, block.num_rows, size):
        yield block.slice(start, size)


def _as_stream(block: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, block.schema) as writer:
        # A slice of a dictionary column would send the whole dictionary each time.
        writer.write_table(block.combine_chunks())
    content: bytes = sink.getvalue().to_pybytes()
    return content


if __name__ == "__main__":
    main()
    # Readers leave threads behind, for which an ordinary exit may wait for ever.
    os._exit(0)
