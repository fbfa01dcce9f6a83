"""Tables as Arrow streams and as comma-separated values, in requests and responses."""

import io
import json
import struct
from collections.abc import Mapping
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from service.predicting.answer import Answer
from service.predicting.codecs.codec import ARROW, CSV, Body, Written
from service.predicting.query import Query, read_options
from service.shared.errors import InvalidRequest
from tfbbb.base.texts import abbreviate
from tfbbb.base.types import JsonList

# What pyarrow raises for bytes that are not a valid stream, also for their texts.
_FAULTS = (
    *(pa.ArrowException, struct.error, OSError, ValueError),
    *(OverflowError, LookupError, TypeError),
)
# The most cells, and bytes of texts, for each byte of a body: a column of booleans has
# eight cells per byte. Repeated texts and columns without values could have any number.
_MOST_PER_BYTE = 8
# The places of fields in tables of FlatBuffers, by `Message.fbs` of the Arrow format.
_HEADER_TYPE, _HEADER = 1, 2
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_DATA, _COMPRESSION = 1, 3


def read_arrow(body: Body, options: Mapping[str, object]) -> Query:
    """Reads an Arrow stream of one or more record batches."""
    buffer = pa.py_buffer(body)
    try:
        _refuse_compression(buffer)
        with pa.ipc.open_stream(buffer) as stream:
            table = stream.read_all()
        table.validate(full=True)
    except _FAULTS as error:
        raise InvalidRequest(f"The body is not an Arrow stream: {error}.") from None
    cells = table.num_rows * max(1, table.num_columns)
    chunks = (chunk for column in table.columns for chunk in column.chunks)
    if max(cells, sum(map(_count_text_bytes, chunks))) > _MOST_PER_BYTE * len(body):
        raise InvalidRequest(
            "The table is too large for its bytes, because it repeats texts or has "
            "columns without values: send fewer rows at a time. "
            f"Received: {table.num_rows} rows in {len(body)} bytes"
        )
    return _query(table, options)


def write_arrow(answer: Answer) -> Written:
    """Writes one row per row; arrays are lists of fixed sizes, sets are lists.

    The metadata of the schema are what JSON says of the answer, objects as JSON.
    """
    columns = {name: _column(values) for name, values in answer.outputs.items()}
    columns["warnings"] = pa.array(answer.warnings, pa.list_(pa.string()))
    metadata = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in answer.description.items()
    }
    table = pa.table(columns).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return Written(sink.getvalue().to_pybytes(), ARROW)


def read_csv(body: Body, options: Mapping[str, object]) -> Query:
    """Reads a table in UTF-8 with commas and a header; every column is text."""
    if not body.strip():
        raise InvalidRequest("The body must have a header line; it is empty.")
    # A quoted name may hold commas: then these are more types than columns.
    num_columns = body.partition(b"\n")[0].count(b",") + 1
    types = {f"f{place}": pa.string() for place in range(num_columns)}
    try:
        table = pa.csv.read_csv(
            io.BytesIO(body),
            pa.csv.ReadOptions(
                use_threads=False,
                block_size=max(1, len(body)),
                # The header is read as the first row, so that its names need no types.
                autogenerate_column_names=True,
            ),
            pa.csv.ParseOptions(newlines_in_values=True),
            pa.csv.ConvertOptions(column_types=types),
        )
    except pa.ArrowInvalid as error:
        raise InvalidRequest(f"The body is not a table in CSV: {error}.") from None
    names = [str(column[0].as_py()).removeprefix("\ufeff") for column in table.columns]
    return _query(table.slice(1).rename_columns(names), options)


def write_csv(answer: Answer) -> Written:
    """Writes one line per row, and one column per number."""
    sink = io.BytesIO()
    pa.csv.write_csv(answer.table(), sink)
    headers = {
        "Model-Version": str(answer.request.version.number),
        "Num-Samples": str(answer.request.num_samples),
    }
    if calibration := answer.calibration:
        headers["Calibration"] = json.dumps(calibration)
    return Written(sink.getvalue(), CSV, headers)


def _query(table: pa.Table, options: Mapping[str, object]) -> Query:
    """Returns the query of a table, whose parameters are in the URL."""
    names = table.column_names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidRequest(f"The table has the column {abbreviate(twice)} twice.")
    parameters, named = read_options(options)
    targets = None if named is None else _read_targets(table, str(named).split(","))
    return Query(None, table, parameters, targets)


def _read_targets(table: pa.Table, names: list[str]) -> JsonList:
    """Returns one value per row, a list of values if there are several columns."""
    for name in names:
        if name not in table.column_names:
            raise InvalidRequest(
                "`targets` must name the columns that hold the targets. "
                f"Received: {abbreviate(name)}, and a table without that column"
            )
    columns = [
        [float(x) if isinstance(x, Decimal) else x for x in table[name].to_pylist()]
        for name in names
    ]
    if len(columns) == 1:
        return columns[0]
    return [list(row) for row in zip(*columns, strict=True)]


def _column(values: object) -> pa.Array:
    """Returns an output as a column: an array [n, a, b] as lists of lists."""
    if not isinstance(values, np.ndarray):
        return pa.array(values)
    column = pa.array(np.ascontiguousarray(values).reshape(-1))
    for size in reversed(values.shape[1:]):
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column


def _count_text_bytes(chunk: pa.Array) -> int:
    """Counts the bytes of texts, those that rows share as often as they occur."""
    if pa.types.is_string_view(chunk.type):
        views = np.frombuffer(chunk.buffers()[1], np.int32).reshape(-1, 4)
        return int(views[: len(chunk), 0].sum(dtype=np.int64))
    if not (pa.types.is_dictionary(chunk.type) and len(chunk)):
        return 0
    shared = chunk.type.value_type
    if pa.types.is_string_view(shared):
        raise InvalidRequest(
            "A dictionary of texts must have the type string or large_string. "
            f"Received: {chunk.type}"
        )
    if not (pa.types.is_string(shared) or pa.types.is_large_string(shared)):
        return 0
    lengths = pa.compute.binary_length(chunk.dictionary)
    return pa.compute.sum(lengths.take(chunk.indices)).as_py() or 0


def _refuse_compression(stream: pa.Buffer) -> None:
    """Refuses compressed batches, whose size in memory nothing bounds."""
    for message in pa.ipc.MessageReader.open_stream(stream):
        if _is_compressed(message.metadata.to_pybytes()):
            raise InvalidRequest(
                "The batches of the Arrow stream must not be compressed; write them "
                "with `pyarrow.ipc.IpcWriteOptions(compression=None)`."
            )


def _is_compressed(message: bytes) -> bool:
    """Returns whether the batch of a message, a table of FlatBuffers, is compressed."""
    (root,) = struct.unpack_from("<I", message)
    kind, batch = (_field(message, root, x) for x in (_HEADER_TYPE, _HEADER))
    if not kind or message[kind] not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return False
    if message[kind] == _DICTIONARY_BATCH:
        batch = _field(message, _follow(message, batch), _DATA)
    return _field(message, _follow(message, batch), _COMPRESSION) != 0


def _field(message: bytes, table: int, index: int) -> int:
    """Returns the position of a field of a table; 0 if the table lacks the field."""
    (to_offsets,) = struct.unpack_from("<i", message, table)
    offsets = table - to_offsets
    (size,) = struct.unpack_from("<H", message, offsets)
    place = 4 + 2 * index
    if place >= size:
        return 0
    (offset,) = struct.unpack_from("<H", message, offsets + place)
    return table + offset if offset else 0


def _follow(message: bytes, place: int) -> int:
    """Returns the position to which the field at a place refers."""
    return place + int(struct.unpack_from("<I", message, place)[0])
