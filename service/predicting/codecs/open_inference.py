"""Requests and responses of the Open Inference Protocol, in JSON and in binary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import orjson
from pydantic import ValidationError

from service.predicting.answer import Answer
from service.predicting.codecs.codec import Body, Written, is_large_text, response
from service.predicting.codecs.json_body import parse_json
from service.predicting.codecs.tensors import (
    DATATYPES_BY_DTYPE,
    decode,
    encode,
    read_data,
)
from service.predicting.query import Query, check_signature, read_text_parameters
from service.shared.errors import InvalidRequest
from service.shared.json_types import JsonObject
from service.shared.open_inference import InferRequest, InputTensor, OutputRequest
from tfbbb.base.texts import abbreviate
from tfbbb.base.validation_errors import describe_validation_error, field_path

_HEADER = "Inference-Header-Content-Length"


@dataclass(frozen=True)
class InferenceQuery(Query):
    """A request of the Open Inference Protocol.

    Args:
        id: The id to return.
        outputs: Whether to return each chosen output in binary, by name; None for all.
        binary: Whether to return other outputs in binary.
    """

    id: str | None
    outputs: dict[str, bool] | None
    binary: bool


def is_large(body: Body, options: Mapping[str, int]) -> bool:
    """Whether reading a body takes the interpreter long: raw numbers do not."""
    json_size = options.get("json_size", len(body))
    has_texts = b"BYTES" in memoryview(body)[:json_size].tobytes()
    return is_large_text(body if has_texts else body[:json_size], options)


def read(body: Body, options: Mapping[str, int]) -> InferenceQuery:
    """Reads the body of an `infer` request; does not validate the table."""
    view = memoryview(body)
    json_size = options.get("json_size", len(view))
    if json_size > len(view):
        raise InvalidRequest(
            f"`{_HEADER}` must be the bytes of the JSON part of the body, at most the "
            f"{len(view)} bytes of the body. Received: {json_size}"
        )
    document, fault = parse_json(view[:json_size])
    try:
        request = InferRequest.model_validate(document, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        message = describe_validation_error(first)
        raise InvalidRequest(message, field_path(first)) from None
    given = dict(request.parameters or {})
    binary = _flag(given.pop("binary_data_output", False), "binary_data_output")
    outputs = _read_outputs(request.outputs or (), binary)
    columns = _read_inputs(request.inputs, view[json_size:])
    check_signature(given.pop("signature_name", None))
    targets = None
    if (name := given.pop("targets", None)) is not None:
        if name not in columns:
            raise InvalidRequest(
                "`parameters.targets` must be the name of the input that holds the "
                f"targets. Received: {abbreviate(name)}"
            )
        targets = np.asarray(columns.pop(name)).tolist()
    parameters = read_text_parameters(given)
    return InferenceQuery(
        rows=None,
        columns=columns,
        parameters=parameters,
        targets=targets,
        fault=fault,
        id=request.id,
        outputs=outputs,
        binary=binary,
    )


def write(answer: Answer) -> Written:
    """Writes the chosen outputs, rows first, in JSON or in binary."""
    request = answer.request
    query = request.query
    assert isinstance(query, InferenceQuery)
    tensors = output_tensors(answer)
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
        output: JsonObject = {
            "name": name,
            "datatype": datatype,
            "shape": list(values.shape),
        }
        if binary:
            raw.append(encode(values))
            output["parameters"] = {"binary_data_size": len(raw[-1])}
        else:
            flat = values.reshape(-1)
            output["data"] = flat.tolist() if datatype == "BYTES" else flat
        described.append(output)
    document: JsonObject = {
        "model_name": request.version.name,
        "model_version": str(request.version.number),
    }
    if query.id is not None:
        document["id"] = query.id
    document["parameters"] = {"num_samples": request.num_samples}
    if calibration := answer.calibration:
        # Parameters are texts, numbers and booleans.
        document["parameters"]["calibration"] = orjson.dumps(calibration).decode()
    document["outputs"] = described
    head = orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)
    if not raw:
        return response(head, "application/json")
    content = b"".join([head, *raw])
    sizes = {_HEADER.replace("-", "_"): str(len(head))}
    return response(content, "application/octet-stream", **sizes)


def output_tensors(answer: Answer) -> dict[str, np.ndarray]:
    """Returns the outputs of an answer as tensors, texts as arrays of objects.

    Prediction sets are booleans [n, levels, classes], warnings one text per row.
    """
    tensors = {}
    classes = answer.request.manifest.classes
    for name, values in answer.outputs.items():
        if name == "prediction_sets":
            tensors[name] = np.array(
                [
                    [[c in level for c in classes or ()] for level in sets]
                    for sets in values
                ],
                dtype=bool,
            )
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
        if given.name in columns:
            raise InvalidRequest(f"The input {abbreviate(given.name)} is given twice.")
        values, raw = _read_input(given, raw)
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


def _read_input(given: InputTensor, raw: memoryview) -> tuple[np.ndarray, memoryview]:
    """Returns the values of an input, and the bytes after them."""
    what, shape = f"The input {abbreviate(given.name)}", tuple(given.shape)
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
        return read_data(given.data, given.datatype, shape, what), raw
    if type(size) is not int or not 0 <= size <= len(raw):
        raise InvalidRequest(
            f"{what} has a `binary_data_size` that is not among the {len(raw)} bytes "
            f"left of the body. Received: {abbreviate(size)}"
        )
    return decode(raw[:size], given.datatype, shape, what), raw[size:]


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
