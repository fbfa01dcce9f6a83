"""The body of a request of the Open Inference Protocol."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from service.shared.json_types import JsonList, JsonObject
from tfbbb.base.known_fields import KnownFields

Datatype = Literal[
    "BOOL",
    "BYTES",
    "FP16",
    "FP32",
    "FP64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
]


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
