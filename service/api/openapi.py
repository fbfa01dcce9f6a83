"""`/openapi.json`: the description of the API, from which programs generate clients."""

from typing import Any

from fastapi import FastAPI

from service.shared.json_types import JsonObject

# The keys of schemas that are made of others.
_REFERRING = {"$ref", "allOf", "anyOf", "oneOf"}


def describe_portably(app: FastAPI) -> None:
    """Makes the description of an application valid OpenAPI 3.1, for all generators."""
    made = app.openapi

    def openapi() -> JsonObject:
        if app.openapi_schema is None:
            app.openapi_schema = _portable(made())
            _name_bodies(app.openapi_schema)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _name_bodies(document: JsonObject) -> None:
    """Moves the schemas of bodies to those with names, so that they are one class."""
    for path in document["paths"].values():
        for operation in path.values():
            content = operation.get("requestBody", {}).get("content", {})
            body = content.get("application/json", {})
            if name := body.get("schema", {}).get("title"):
                document["components"]["schemas"][name] = body["schema"]
                body["schema"] = {"$ref": f"#/components/schemas/{name}"}


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
