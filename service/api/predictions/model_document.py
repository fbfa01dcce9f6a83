"""The OpenAPI document of one model, from which client generators make typed rows."""

from service.api.http.errors import ErrorBody
from service.api.predictions.schemas import PredictResponse
from service.shared.json_types import JsonObject
from service.shared.model_messages import Metadata
from service.shared.prediction_formats import JSON
from service.shared.prediction_parameters import SIGNATURES, Parameters

_REFERENCE = "#/components/schemas/{model}"


def model_document(metadata: Metadata) -> JsonObject:
    """Returns the OpenAPI document of `:predict` of a version."""
    name, version = metadata.model_spec.name, metadata.model_spec.version
    features = metadata.metadata["manifest"]["features"]
    target = metadata.metadata["manifest"]["target"] or "the target"
    schemas: JsonObject = {"Row": _row(features), "PredictRequest": _request()}
    for model in (Parameters, PredictResponse, ErrorBody):
        schema = model.model_json_schema(ref_template=_REFERENCE)
        schemas |= schema.pop("$defs", {})
        schemas[model.__name__] = schema
    return {
        "openapi": "3.1.0",
        "info": {"title": name, "version": version},
        "paths": {
            f"/v1/models/{name}:predict": {
                "post": {
                    "operationId": "predict",
                    "summary": f"Predict {target}",
                    "requestBody": {
                        "required": True,
                        "content": _json("PredictRequest"),
                    },
                    "responses": {
                        "200": {
                            "description": "The predictive distributions.",
                            "content": _json("PredictResponse"),
                        },
                        "default": {
                            "description": "The error.",
                            "content": _json("ErrorBody"),
                        },
                    },
                    "security": [{"key": []}],
                }
            }
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _json(schema: str) -> JsonObject:
    return {JSON: {"schema": {"$ref": _REFERENCE.format(model=schema)}}}


def _request() -> JsonObject:
    return {
        "type": "object",
        "required": ["instances"],
        "properties": {
            "instances": {
                "type": "array",
                "minItems": 1,
                "items": {"$ref": _REFERENCE.format(model="Row")},
            },
            "signature_name": {"enum": list(SIGNATURES), "default": SIGNATURES[0]},
            "targets": {"type": "array", "items": {}},
            "parameters": {"$ref": _REFERENCE.format(model="Parameters")},
        },
    }


def _row(features: list[JsonObject]) -> JsonObject:
    return {
        "type": "object",
        "required": [feature["name"] for feature in features],
        "properties": {feature["name"]: _value(feature) for feature in features},
        "example": {feature["name"]: _example(feature) for feature in features},
    }


def _value(feature: JsonObject) -> JsonObject:
    """Returns the schema of a value; training's range and categories are no limits."""
    types = ["string"] if feature["kind"] == "categorical" else ["number"]
    if feature["kind"] == "date" or (
        feature["kind"] == "numeric" and feature["notation"] is not None
    ):
        types.append("string")
    if feature["missing"] or feature["imputed"]:
        types.append("null")
    described = []
    if feature["kind"] == "date":
        described.append("A date, or seconds since 1970.")
    if (low := feature["low"]) is not None and (high := feature["high"]) is not None:
        described.append(f"In training from {low:.6g} to {high:.6g}.")
    schema: JsonObject = {"type": types[0] if len(types) == 1 else types}
    if categories := _categories(feature):
        described.append("In training one of the examples.")
        schema["examples"] = categories
    if described:
        schema["description"] = " ".join(described)
    return schema


def _categories(feature: JsonObject) -> list[str]:
    """Returns the categories without the empty text, which is a missing value."""
    return [category for category in feature["categories"] or () if category]


def _example(feature: JsonObject) -> float | str:
    """Returns a value of the training rows, where the manifest knows one."""
    if feature["kind"] == "categorical":
        return str((_categories(feature) or ["text"])[0])
    if feature["low"] is None or feature["high"] is None:
        return 0
    middle = (feature["low"] + feature["high"]) / 2
    is_whole = feature["kind"] == "date" or (
        feature["low"] % 1 == 0 and feature["high"] % 1 == 0
    )
    return int(middle) if is_whole else float(f"{middle:.4g}")
