"""Requests and responses of the Open Inference Protocol, in JSON and in binary."""

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import orjson
from pydantic import AfterValidator, Field, ValidationError

from service.predicting.answer import Answer
from service.predicting.codecs.codec import JSON, Body, Written
from service.predicting.codecs.json_rows import parse_json
from service.predicting.query import Query, read_options
from service.predicting.table import flattened
from service.shared.errors import InvalidRequest
from tfbbb.base.known_fields import KnownFields
from tfbbb.base.texts import abbreviate
from tfbbb.base.types import JsonList, JsonObject
from tfbbb.base.validation_errors import describe_validation_error, field_path

_HEADER = "Inference-Header-Content-Length"

# Little-endian, as the protocol has it. Texts are arrays of objects.
DATATYPES = {
    "BOOL": np.dtype("?"),
    **{
        f"{kind}{8 * size}": np.dtype(f"<{kind[0].lower()}{size}")
        for kind in ("INT", "UINT")
        for size in (1, 2, 4, 8)
    },
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
    "BYTES": np.dtype(object),
}
DATATYPES_BY_DTYPE = {dtype: name for name, dtype in DATATYPES.items()}
if TYPE_CHECKING:
    Datatype = str
else:
    Datatype = Literal[*sorted(DATATYPES)]
_LENGTH = struct.Struct("<I")


def _check_values(parameters: JsonObject) -> JsonObject:
    """Raises one error for any number of wrong values."""
    if not all(isinstance(value, str | int | float) for value in parameters.values()):
        raise ValueError("parameters must be texts, numbers or booleans")
    return parameters


Parameters = Annotated[JsonObject, AfterValidator(_check_values)]


class InputTensor(KnownFields):
    """Rows of a matrix, or values of a column: `data`, or bytes after the JSON."""

    name: str
    # A column has one axis or two, of which the second has the size 1; a matrix has
    # two, a film five.
    shape: Annotated[
        list[Annotated[int, Field(ge=1, le=2**53)]],
        Field(min_length=1, max_length=5, fail_fast=True),
    ] = Field(description="`[rows]`, `[rows, 1]` or `[rows, values]`.")
    datatype: Datatype
    parameters: Parameters | None = Field(
        None, description="`binary_data_size`, in place of `data`."
    )
    data: JsonList | None = Field(None, description="Nested, or flat by rows.")


class OutputRequest(KnownFields):
    """An output to return."""

    name: str
    parameters: Parameters | None = Field(
        None, description="`binary_data`: whether to return raw bytes."
    )


class InferRequest(KnownFields):
    """One matrix `inputs`, or one input per column."""

    id: str | None = None
    parameters: Parameters | None = Field(
        None,
        description="Those of `:predict`, several levels as `0.05,0.95`; `targets`, "
        "the name of an input; `signature_name`; `binary_data_output`.",
    )
    inputs: Annotated[list[InputTensor], Field(min_length=1, fail_fast=True)]
    outputs: Annotated[list[OutputRequest], Field(fail_fast=True)] | None = None


@dataclass(frozen=True)
class InferenceQuery(Query):
    """A request, with the id to return and whether chosen outputs are in binary."""

    id: str | None
    # By name; None for all outputs.
    outputs: dict[str, bool] | None
    # Whether all of them are.
    binary: bool


def text_bytes(body: Body, options: Mapping[str, int]) -> int:
    """Counts the bytes that are parsed: raw numbers are not."""
    json_size = options.get("json_size", len(body))
    has_texts = b"BYTES" in memoryview(body)[:json_size].tobytes()
    return len(body) if has_texts else json_size


def read(body: Body, options: Mapping[str, int]) -> InferenceQuery:
    """Reads the body of an `infer` request; does not validate the table."""
    view = memoryview(body)
    json_size = options.get("json_size", len(view))
    if json_size > len(view):
        raise InvalidRequest(
            f"`{_HEADER}` must be the bytes of the JSON part of the body, at most the "
            f"{len(view)} bytes of the body. Received: {json_size}"
        )
    try:
        request = InferRequest.model_validate(parse_json(view[:json_size]), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        message = describe_validation_error(first)
        raise InvalidRequest(message, field_path(first)) from None
    given = dict(request.parameters or {})
    binary = _flag(given.pop("binary_data_output", False), "binary_data_output")
    outputs = _read_outputs(request.outputs or (), binary)
    columns = _read_inputs(request.inputs, view[json_size:])
    parameters, name = read_options(given)
    targets = None
    if name is not None:
        if name not in columns:
            raise InvalidRequest(
                "`parameters.targets` must be the name of the input that holds the "
                f"targets. Received: {abbreviate(name)}"
            )
        targets = np.asarray(columns.pop(str(name))).tolist()
    return InferenceQuery(
        None, columns, parameters, targets, request.id, outputs, binary
    )


def write(answer: Answer) -> Written:
    """Writes the chosen outputs, rows first, in JSON or in binary."""
    request = answer.request
    query = request.query
    assert isinstance(query, InferenceQuery)
    tensors = _output_tensors(answer)
    chosen = query.outputs
    if chosen is None:
        chosen = dict.fromkeys(tensors, query.binary)
        if not any(answer.warnings):
            del chosen["warnings"]
    described: list[JsonObject] = []
    raw: list[bytes] = []
    for name, binary in chosen.items():
        if name not in tensors:
            raise InvalidRequest(
                f"The request has no output {abbreviate(name)}, but "
                f"{', '.join(tensors)}; levels in `parameters`, such as "
                "`quantiles`, add outputs."
            )
        values = tensors[name]
        datatype = DATATYPES_BY_DTYPE[values.dtype]
        shape = list(values.shape)
        output: JsonObject = {"name": name, "datatype": datatype, "shape": shape}
        if binary:
            raw.append(_encode(values))
            output["parameters"] = {"binary_data_size": len(raw[-1])}
        else:
            flat = values.reshape(-1)
            output["data"] = flat.tolist() if datatype == "BYTES" else flat
        described.append(output)
    parameters: JsonObject = {"num_samples": request.num_samples}
    if calibration := answer.calibration:
        # Parameters are texts, numbers and booleans.
        parameters["calibration"] = orjson.dumps(calibration).decode()
    document = {
        "model_name": request.version.name,
        "model_version": str(request.version.number),
        **({} if query.id is None else {"id": query.id}),
        "parameters": parameters,
        "outputs": described,
    }
    head = orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)
    if not raw:
        return Written(head, JSON)
    content = b"".join([head, *raw])
    return Written(content, "application/octet-stream", {_HEADER: str(len(head))})


def _output_tensors(answer: Answer) -> dict[str, np.ndarray]:
    """Returns outputs as tensors: sets as booleans [n, levels, classes], and texts."""
    tensors = {}
    classes = answer.request.manifest.classes or ()
    for name, values in answer.outputs.items():
        if name == "prediction_sets":
            inside = [[[c in one for c in classes] for one in sets] for sets in values]
            tensors[name] = np.array(inside, dtype=bool)
        elif isinstance(values, np.ndarray):
            tensors[name] = np.ascontiguousarray(values)
        else:
            tensors[name] = np.array(values, dtype=object)
    sentences = [" ".join(given) for given in answer.warnings]
    return tensors | {"warnings": np.array(sentences, dtype=object)}


def _read_inputs(inputs: Sequence[InputTensor], raw: memoryview) -> JsonObject:
    """Returns the values of all inputs by name."""
    columns: JsonObject = {}
    for given in inputs:
        what, shape = f"The input {abbreviate(given.name)}", tuple(given.shape)
        if given.name in columns:
            raise InvalidRequest(f"{what} is given twice.")
        parameters = dict(given.parameters or {})
        size = parameters.pop("binary_data_size", None)
        if parameters:
            raise InvalidRequest(
                f"{what} may have the parameter `binary_data_size`; the service reads "
                f"tensors from the body alone. Received: {abbreviate(min(parameters))}"
            )
        if (size is None) == (given.data is None):
            raise InvalidRequest(
                f"{what} needs either `data` or the parameter `binary_data_size`."
            )
        if size is None:
            values = _read_data(given.data, shape, what)
        elif type(size) is int and 0 <= size <= len(raw):
            values = _decode(raw[:size], given.datatype, shape, what)
            raw = raw[size:]
        else:
            raise InvalidRequest(
                f"{what} has a `binary_data_size` that is not among the {len(raw)} "
                f"bytes left of the body. Received: {abbreviate(size)}"
            )
        if given.datatype == "BYTES":
            # Raw tensors have no null: an empty text is no value, also of a number.
            values[values == ""] = None
        columns[given.name] = values
    if raw:
        raise InvalidRequest(
            f"{len(raw)} bytes follow the last tensor of the body: the sizes in "
            "`binary_data_size` must add up to those after the JSON part."
        )
    return columns


def _read_outputs(
    outputs: Sequence[OutputRequest], binary: bool
) -> dict[str, bool] | None:
    """Returns whether each chosen output is binary, by name; None for all outputs."""
    chosen = {}
    for given in outputs:
        parameters = dict(given.parameters or {})
        chosen[given.name] = _flag(parameters.pop("binary_data", binary), "binary_data")
        # What tritonclient sends if no classes are asked for.
        if parameters.pop("classification", 0) or parameters:
            raise InvalidRequest(
                f"The output {abbreviate(given.name)} may have the parameter "
                f"`binary_data`. Received: {abbreviate(given.parameters)}"
            )
    return chosen or None


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidRequest(
            f"`{name}` must be true or false. Received: {abbreviate(value)}"
        )
    return value


def _decode(
    raw: memoryview, datatype: str, shape: Sequence[int], what: str
) -> np.ndarray:
    """Returns the tensor in raw bytes, which it shares where their address allows."""
    if datatype == "BYTES":
        return _decode_texts(raw, shape, what)
    dtype = DATATYPES[datatype]
    size = math.prod(shape) * dtype.itemsize
    if len(raw) != size:
        raise InvalidRequest(
            f"{what} of the shape {list(shape)} and the datatype {datatype} has {size} "
            f"bytes. Received: {len(raw)} bytes"
        )
    if datatype == "BOOL":
        # Any byte but 0 is true; an array of booleans must hold 0 and 1.
        flags: np.ndarray = np.frombuffer(raw, np.uint8) != 0
        return flags.reshape(shape)
    values: np.ndarray = np.frombuffer(raw, dtype).reshape(shape)
    return values if values.flags.aligned else values.copy()


def _encode(values: np.ndarray) -> bytes:
    """Returns the raw bytes of a tensor."""
    if values.dtype.kind != "O":
        return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
    texts = [text.encode() for text in values.reshape(-1)]
    return b"".join(chain.from_iterable((_LENGTH.pack(len(t)), t) for t in texts))


def _read_data(data: object, shape: Sequence[int], what: str) -> np.ndarray:
    """Returns nested or flat `data`: objects if texts or missing numbers are in it."""
    values = flattened(data, [math.prod(shape)])
    if values is None or isinstance(values[0], list):
        values = flattened(data, shape)
    if values is None:
        raise InvalidRequest(
            f"{what} must have `data` of the shape {list(shape)}, nested or flat. "
            f"Received: {abbreviate(data)}"
        )
    tensor = np.array(values) if {*map(type, values)} <= {int, float} else None
    if tensor is None:
        tensor = np.empty(len(values), object)
        tensor[:] = values
    return tensor.reshape(shape)


def _decode_texts(raw: memoryview, shape: Sequence[int], what: str) -> np.ndarray:
    """Reads texts in UTF-8, each after its length in four bytes."""
    texts: list[str] = []
    end, size = 0, math.prod(shape)
    fault = ""
    while len(texts) < size and not fault:
        number, begin = len(texts) + 1, end + _LENGTH.size
        length = _LENGTH.unpack_from(raw, end)[0] if begin <= len(raw) else 0
        end = begin + length
        if end > len(raw):
            fault = f"text {number} ends beyond the {len(raw)} bytes of the tensor."
            continue
        try:
            texts.append(str(raw[begin:end], "utf-8"))
        except UnicodeDecodeError:
            received = abbreviate(bytes(raw[begin:end][:100]))
            fault = f"text {number} is not UTF-8. Received: {received}"
    if not fault and end != len(raw):
        fault = f"{len(raw) - end} bytes follow its {size} texts."
    if fault:
        raise InvalidRequest(f"{what}: {fault}")
    return np.array(texts, dtype=object).reshape(shape)
