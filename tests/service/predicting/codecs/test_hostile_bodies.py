"""Damaged bodies are refused, without more memory than a small multiple of them."""

import contextlib
import struct
import tracemalloc
from contextlib import contextmanager

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.predicting.codecs import CODECS
from service.predicting.table import from_columns
from service.shared.errors import InvalidRequest
from tests.exported_manifests import manifest
from tfbbb.export.inputs import to_tensors
from tfbbb.export.manifest import Feature, InputError

MATRIX = tuple(
    Feature(name, "numeric", missing=False, tensor="inputs") for name in ("a", "b")
)
COLUMNS = (
    Feature("a", "numeric", missing=True, tensor="a"),
    Feature("b", "categorical", missing=True, tensor="b"),
)
# Python objects of a JSON document take some 30 bytes per byte.
MOST_PER_BYTE, MOST_MORE = 50, 2**20

EXAMPLES = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


MANIFESTS = [manifest(MATRIX), manifest(COLUMNS)]


@contextmanager
def little_memory(body):
    """Fails if the block takes more memory than a small multiple of the body."""
    most = MOST_PER_BYTE * len(body) + MOST_MORE
    pool = pa.default_memory_pool()
    before, peak = pool.bytes_allocated(), pool.max_memory()
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
        # The peak of the pool is that of the process so far.
        assert pool.max_memory() <= max(peak, before + most)
    finally:
        tracemalloc.stop()


def read(codec, body, options):
    """Reads a table as a prediction does, by a model of each kind."""
    query = CODECS[codec].read(bytearray(body), options)
    for found in MANIFESTS:
        with contextlib.suppress(InputError):
            to_tensors(from_columns(query.columns, found), found)


def inference(document, *raw):
    head = orjson.dumps(document)
    return b"".join([head, *raw]), {"json_size": len(head)}


def texts(*values):
    encoded = [value.encode() for value in values]
    return b"".join(struct.pack("<I", len(value)) + value for value in encoded)


def tensor(name, datatype, shape, size):
    parameters = {"binary_data_size": size}
    given = {"name": name, "datatype": datatype, "shape": shape}
    return given | {"parameters": parameters}


def stream(table, **options):
    sink = pa.BufferOutputStream()
    choices = pa.ipc.IpcWriteOptions(**options)
    with pa.ipc.new_stream(sink, table.schema, options=choices) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


TABLE = pa.table(
    {
        "a": pa.array([1.0, None, 3.0], pa.float32()),
        "b": pa.array(["x", "", "zz"]).dictionary_encode(),
        "c": pa.array([[1], None, [2, 3]]),
        "d": pa.array(["x", "y", "a text that is too long for its view"]).cast(
            pa.string_view()
        ),
    }
)


@EXAMPLES
@given(data=st.data())
def test_changed_bytes_of_inferences_are_read_or_refused(data):
    raw = np.float32([1, 2]).tobytes(), texts("é", "")
    inputs = [tensor("a", "FP32", [2], 8), tensor("b", "BYTES", [2, 1], len(raw[1]))]
    body, options = inference({"inputs": inputs}, *raw)
    body = data.draw(damaged(body))
    with little_memory(body), contextlib.suppress(InvalidRequest):
        read("open_inference", body, options)


@EXAMPLES
@given(data=st.data())
def test_changed_bytes_of_arrow_streams_are_read_or_refused(data):
    body = data.draw(damaged(stream(TABLE)))
    with little_memory(body), contextlib.suppress(InvalidRequest):
        read("arrow", body, {})


@EXAMPLES
@given(
    body=st.binary(max_size=100) | st.text('ab",\n\r1.', max_size=50).map(str.encode)
)
def test_any_bytes_are_read_or_refused(body):
    for codec in CODECS:
        with contextlib.suppress(InvalidRequest):
            read(codec, body, {})


def damaged(body):
    """Bodies cut short, with more bytes, or with other bytes in a place."""
    places = st.integers(0, len(body) - 1)
    bytes_ = st.binary(min_size=1, max_size=8) | st.sampled_from(
        [b"\xff" * 4, b"\xff\xff\xff\x7f", b"\0" * 8, struct.pack("<q", 10**12)]
    )
    return st.one_of(
        places.map(lambda place: body[:place]),
        bytes_.map(lambda more: body + more),
        st.builds(lambda p, b: body[:p] + b + body[p + len(b) :], places, bytes_),
        st.builds(lambda p, b: body[:p] + b + body[p:], places, bytes_),
    )


@pytest.mark.parametrize(
    ("given", "raw", "message"),
    [
        (tensor("a", "FP32", [10**12], 4), b"\0" * 4, "has 4000000000000 bytes. Rec"),
        (tensor("a", "FP32", [1], 8), b"\0" * 4, "not among the 4 bytes left"),
        (tensor("a", "FP32", [1], 4), b"\0" * 5, "1 bytes follow the last tensor"),
        (tensor("a", "BYTES", [1], 5), b"\2\0\0\0x", "text 1 ends beyond the 5 bytes"),
        (tensor("a", "BYTES", [1], 5), b"\1\0\0\0\xff", "text 1 is not UTF-8"),
        (tensor("a", "FP8", [1], 1), b"\0", "`inputs.0.datatype` must be 'BOOL'"),
        ({"name": "a", "datatype": "FP32", "shape": [1]}, b"", "needs either `data`"),
        (tensor("a", "FP32", [1], 4) | {"data": [1]}, b"\0" * 4, "needs either `data`"),
        (
            tensor("a", "FP32", [1], 4) | {"parameters": {"shared_memory_region": "x"}},
            b"\0" * 4,
            "reads tensors from the body alone",
        ),
    ],
)
def test_fault_of_a_tensor_is_described(given, raw, message):
    body, options = inference({"inputs": [given]}, raw)
    with pytest.raises(InvalidRequest, match=message):
        read("open_inference", body, options)


def test_many_wrong_parameters_are_one_error():
    parameters = {f"wrong {place}": [] for place in range(10**5)}
    for document in (
        {"parameters": parameters, "inputs": [tensor("a", "FP32", [1], 4)]},
        {"inputs": [tensor("a", "FP32", [1], 4) | {"parameters": parameters}]},
    ):
        body, options = inference(document)
        with (
            little_memory(body),
            pytest.raises(InvalidRequest, match="must be texts, numbers or booleans"),
        ):
            read("open_inference", body, options)


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_arrow_is_refused(compression):
    table = pa.table({"b": pa.array(["x" * 10**4]).dictionary_encode()})
    body = stream(table, compression=compression)
    with pytest.raises(InvalidRequest, match="must not be compressed"):
        read("arrow", body, {})


def test_arrow_that_grows_in_memory_is_refused():
    text = "x" * 10**5
    views = struct.pack("<i4sii", len(text), text[:4].encode(), 0, 0) * 10**5
    indices = pa.array(np.zeros(10**5, np.int8))
    for column in (
        pa.DictionaryArray.from_arrays(indices, pa.array([text])),
        pa.Array.from_buffers(
            pa.string_view(),
            10**5,
            [None, pa.py_buffer(views), pa.py_buffer(text.encode())],
        ),
        pa.nulls(10**9),
    ):
        body = stream(pa.table({"a": column}))
        with (
            little_memory(body),
            pytest.raises(InvalidRequest, match="too large for its bytes"),
        ):
            read("arrow", body, {})
