"""Tables as Arrow streams, in requests and in responses."""

import json
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute

from service.predicting.answer import Answer
from service.predicting.codecs.arrow_messages import check_messages
from service.predicting.codecs.codec import Body, Written, response
from service.predicting.codecs.table_query import table_query
from service.predicting.query import Query
from service.shared.errors import InvalidRequest
from service.shared.prediction_formats import ARROW

# What pyarrow raises for bytes that are not a valid stream, also for their texts.
_FAULTS = (pa.ArrowException, OSError, ValueError, OverflowError, KeyError, TypeError)
# The most cells, and bytes of texts, for each byte of a body: a column of booleans has
# eight cells per byte. Repeated texts and columns without values could have any number.
_MOST_PER_BYTE = 8
_LARGE = 2**20


def is_large(body: Body, options: Mapping[str, object]) -> bool:
    """Whether reading a body takes the interpreter long: its texts, if it has any."""
    return len(body) > _LARGE


def read(body: Body, options: Mapping[str, object]) -> Query:
    """Reads an Arrow stream of one or more record batches."""
    try:
        table = _read_table(pa.py_buffer(body))
    except _FAULTS as error:
        raise InvalidRequest(f"The body is not an Arrow stream: {error}.") from None
    cells = table.num_rows * max(1, table.num_columns)
    if max(cells, _count_text_bytes(table)) > _MOST_PER_BYTE * len(body):
        raise InvalidRequest(
            "The table is too large for its bytes, because it repeats texts or has "
            "columns without values: send fewer rows at a time. "
            f"Received: {table.num_rows} rows in {len(body)} bytes"
        )
    return table_query(table, options)


def write(answer: Answer) -> Written:
    """Writes one row per row; arrays are lists of fixed sizes, sets are lists.

    The metadata of the schema are `model_name`, `model_version`, `num_samples`
    and, as JSON, `classes` and `calibration`.
    """
    request = answer.request
    columns = {name: _column(values) for name, values in answer.outputs.items()}
    columns["warnings"] = pa.array(answer.warnings, pa.list_(pa.string()))
    classes = request.manifest.classes
    metadata = {
        "model_name": request.version.name,
        "model_version": str(request.version.number),
        "num_samples": str(request.num_samples),
        **({} if classes is None else {"classes": json.dumps(classes)}),
        **({"calibration": json.dumps(said)} if (said := answer.calibration) else {}),
    }
    table = pa.table(columns).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return response(sink.getvalue().to_pybytes(), ARROW)


def _column(values: object) -> pa.Array:
    """Returns an output as a column: an array [n, a, b] as lists of lists."""
    if not isinstance(values, np.ndarray):
        return pa.array(values)
    column = pa.array(np.ascontiguousarray(values).reshape(-1))
    for size in reversed(values.shape[1:]):
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column


def _read_table(buffer: pa.Buffer) -> pa.Table:
    check_messages(buffer)
    with pa.ipc.open_stream(buffer) as stream:
        table = stream.read_all()
    table.validate(full=True)
    return table


def _count_text_bytes(table: pa.Table) -> int:
    """Counts the bytes of all texts, those that rows share as often as they occur."""
    return sum(map(_count_chunk_bytes, _chunks(table)))


def _chunks(table: pa.Table) -> Iterator[pa.Array]:
    for column in table.columns:
        yield from column.chunks


def _count_chunk_bytes(chunk: pa.Array) -> int:
    if pa.types.is_string_view(chunk.type):
        views = np.frombuffer(chunk.buffers()[1], np.int32).reshape(-1, 4)
        return int(views[: len(chunk), 0].sum(dtype=np.int64))
    if not (pa.types.is_dictionary(chunk.type) and len(chunk)):
        return 0
    if pa.types.is_string_view(chunk.type.value_type):
        raise InvalidRequest(
            "A dictionary of texts must have the type string or large_string. "
            f"Received: {chunk.type}"
        )
    if not pa.types.is_string(chunk.type.value_type) | pa.types.is_large_string(
        chunk.type.value_type
    ):
        return 0
    lengths = pa.compute.binary_length(chunk.dictionary)
    return pa.compute.sum(lengths.take(chunk.indices)).as_py() or 0
