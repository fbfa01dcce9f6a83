"""`/openapi.json`: the API for programs."""

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from service.api.feedback.schemas import FeedbackRequest
from service.api.http.errors import ErrorBody
from service.api.predictions.schemas import PredictRequest
from service.predicting.codecs.open_inference import InferRequest
from tfbbb.base.types import JsonObject

# Those that FastAPI does not read itself.
_MODELS: tuple[type[BaseModel], ...] = (
    ErrorBody,
    PredictRequest,
    FeedbackRequest,
    InferRequest,
)
# The keys of schemas that are made of others.
_REFERRING = {"$ref", "allOf", "anyOf", "oneOf"}


def describe_portably(app: FastAPI) -> None:
    """Makes the description of an application valid OpenAPI 3.1, for all generators."""
    made = app.openapi
    _, described = models_json_schema(
        [(model, "validation") for model in _MODELS],
        ref_template="#/components/schemas/{model}",
    )

    def openapi() -> JsonObject:
        if app.openapi_schema is None:
            document = made()
            document["components"]["schemas"] |= described["$defs"]
            app.openapi_schema = _portable(document)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _portable(part: Any) -> Any:
    """Returns a part of the description as older tools read it.

    - `itemSchema`, of the events of a stream, came with OpenAPI 3.2.
    - Generators refuse a default that is an object; its fields have their own.
    """
    if isinstance(part, list):
        return [_portable(item) for item in part]
    if not isinstance(part, dict):
        return part
    found = {name: _portable(value) for name, value in part.items()}
    if "itemSchema" in found:
        del found["itemSchema"]
        found["schema"] = {"type": "string"}
    if isinstance(found.get("default"), dict) and found.keys() & _REFERRING:
        del found["default"]
    return found
