"""The answers of the Open Inference Protocol, as OpenAPI documents them."""

from pydantic import BaseModel, Field

from service.shared.json_types import JsonList, JsonObject
from service.shared.open_inference import Datatype, InferRequest, Parameters


class ServerMetadata(BaseModel):
    """The name, the version and the extensions of the service."""

    name: str = Field(examples=["tfbbb"])
    version: str = Field(examples=["1.0.0"])
    commit: str = Field(
        description="Commit of its source; `unknown` if the build did not tell it.",
        examples=["0123456789ab"],
    )
    extensions: list[str] = Field(examples=[["binary_tensor_data"]])


class TensorMetadata(BaseModel):
    """An input or an output; -1 is any number of rows."""

    name: str = Field(examples=["inputs"])
    datatype: Datatype = Field(examples=["FP32"])
    shape: list[int] = Field(examples=[[-1, 10]])


class ModelMetadata(BaseModel):
    """The inputs and outputs of a model."""

    name: str = Field(examples=["diabetes"])
    versions: list[str] = Field(examples=[["1", "2"]])
    platform: str = Field(examples=["tensorflow_savedmodel"])
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata] = Field(
        description="The outputs of every response; parameters add others."
    )
    parameters: Parameters = Field(
        description="`classes`, a JSON list, in the order of `probabilities`."
    )


class ModelReady(BaseModel):
    """The response of a version that predicts."""

    name: str = Field(examples=["diabetes"])
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

    model_name: str = Field(examples=["diabetes"])
    model_version: str = Field(examples=["1"])
    id: str | None = None
    parameters: Parameters = Field(examples=[{"num_samples": 100}])
    outputs: list[OutputTensor]


def infer_body() -> JsonObject:
    """Returns the OpenAPI description of the body of `infer`."""
    schema = InferRequest.model_json_schema()
    definitions = schema.pop("$defs")
    # References into a body do not work in OpenAPI, so the definitions are inlined.
    schema["properties"]["inputs"]["items"] = definitions["InputTensor"]
    schema["properties"]["outputs"]["anyOf"][0]["items"] = definitions["OutputRequest"]
    patient = [59, 2, 32.1, 101, 157, 93.2, 38, 4, 4.8598, 87]
    tensor = {"name": "inputs", "shape": [1, 10], "datatype": "FP32", "data": patient}
    example = {"id": "1", "inputs": [tensor], "outputs": [{"name": "mean"}]}
    in_json = {"schema": schema, "examples": {"A matrix": {"value": example}}}
    return {
        "required": True,
        "content": {"application/json": in_json} | infer_response()["content"],
    }


def infer_response() -> JsonObject:
    """Returns the OpenAPI description of a body with raw tensors."""
    schema = {"type": "string", "format": "binary"}
    return {"content": {"application/octet-stream": {"schema": schema}}}
