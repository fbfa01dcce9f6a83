"""The answers of the Open Inference Protocol, as OpenAPI documents them."""

import json
from collections.abc import Iterable

import numpy as np
from pydantic import BaseModel, Field

from service.predicting.codecs.open_inference import (
    DATATYPES_BY_DTYPE,
    Datatype,
    Parameters,
)
from service.predicting.descriptions import Metadata
from tfbbb.base.types import JsonList, JsonObject


class ServerMetadata(BaseModel):
    """The name, the version and the extensions of the service."""

    name: str
    version: str
    commit: str
    extensions: list[str]


class TensorMetadata(BaseModel):
    """An input or an output; -1 is any number of rows."""

    name: str
    datatype: Datatype
    shape: list[int]


class ModelMetadata(BaseModel):
    """The inputs of a model, and its outputs, to which parameters add others."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]
    parameters: Parameters = Field(description="`classes`, a JSON list.")


class ModelReady(BaseModel):
    """The response of a version that predicts."""

    name: str
    ready: bool


class OutputTensor(BaseModel):
    """An output, rows first; prediction sets are booleans `[rows, levels, classes]`."""

    name: str
    shape: list[int]
    datatype: Datatype
    parameters: Parameters | None = None
    data: JsonList | None = None


class InferResponse(BaseModel):
    """The outputs."""

    model_name: str
    model_version: str
    id: str | None = None
    parameters: Parameters
    outputs: list[OutputTensor]


RAW_TENSORS: JsonObject = {
    "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
}
_ROW = [59, 2, 32.1, 101, 157, 93.2, 38, 4, 4.8598, 87]
_INPUT = {"name": "inputs", "shape": [1, 10], "datatype": "FP32", "data": _ROW}
_EXAMPLE = {"id": "1", "inputs": [_INPUT], "outputs": [{"name": "mean"}]}
INFER_BODY: JsonObject = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {"$ref": "#/components/schemas/InferRequest"},
            "examples": {"A matrix": {"value": _EXAMPLE}},
        },
        **RAW_TENSORS,
    },
}


# The datatypes of features without a data type, and of TensorFlow's outputs.
_OF_KIND = {"numeric": "FP32", "categorical": "BYTES", "date": "INT64"}
_OF_TENSORFLOW = {"FLOAT": "FP32", "DOUBLE": "FP64", "STRING": "BYTES"}


def model_metadata(metadata: Metadata, versions: Iterable[str]) -> ModelMetadata:
    """Describes the inputs of a version, and the outputs that every answer has."""
    manifest = metadata.metadata["manifest"]
    classes = manifest["classes"]
    outputs = _outputs(metadata.metadata["signature_def"]["signature_def"]["predict"])
    outputs += [
        output.model_copy(update={"name": "std"})
        for output in outputs
        if output.name == "variance"
    ]
    if classes is not None:
        outputs.append(_tensor("class", "BYTES", [-1]))
    return ModelMetadata(
        name=metadata.model_spec.name,
        versions=list(versions),
        platform="tensorflow_savedmodel",
        inputs=_inputs(manifest),
        outputs=outputs,
        parameters={} if classes is None else {"classes": json.dumps(classes)},
    )


def _inputs(manifest: JsonObject) -> list[TensorMetadata]:
    features = manifest["features"]
    if manifest["inputs"] == "matrix":
        shape = [-1, *(manifest.get("row_shape") or [len(features)])]
        return [_tensor("inputs", _datatype(features[0]), shape)]
    return [_tensor(one["name"], _datatype(one), [-1]) for one in features]


def _outputs(signature: JsonObject) -> list[TensorMetadata]:
    found = []
    for name, output in sorted(signature["outputs"].items()):
        datatype = output["dtype"].removeprefix("DT_")
        shape = [int(axis["size"]) for axis in output["tensor_shape"]["dim"]]
        found.append(_tensor(name, _OF_TENSORFLOW.get(datatype, datatype), shape))
    return found


def _datatype(feature: JsonObject) -> str:
    dtype = feature.get("dtype")
    return DATATYPES_BY_DTYPE[np.dtype(dtype)] if dtype else _OF_KIND[feature["kind"]]


def _tensor(name: str, datatype: str, shape: list[int]) -> TensorMetadata:
    fields = {"name": name, "datatype": datatype, "shape": shape}
    return TensorMetadata.model_validate(fields)
