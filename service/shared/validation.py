"""Describes validation errors to clients."""

from collections.abc import Iterable, Mapping
from typing import Any

from tfbbb.abbreviation import abbreviate

_MOST_CHARACTERS = 100
# The names of FastAPI for the parts of a request, which clients do not use.
_PARTS = {"body", "path", "query", "header"}


def describe_validation_error(
    error: Mapping[str, Any], within: Iterable[str] = ()
) -> str:
    """Describes the place of an error, the rule, and what was received.

    Args:
        error: One of the `errors()` of pydantic or FastAPI.
        within: Names of the objects that contain the place of the error.
    """
    part, *inner = error["loc"] or ("body",)
    names = [*within, *(inner if part in _PARTS else error["loc"])]
    path = ".".join(str(name)[:_MOST_CHARACTERS] for name in names)
    place = f"`{path}`" if names else f"The {part}"
    received = error["input"]
    match error["type"]:
        case "json_invalid":
            wrong = f"{error['ctx']['error']}, at character {inner[0]}"
            return f"The body is not JSON: {wrong}."
        case "model_attributes_type" if isinstance(received, bytes):
            return (
                "The body must be JSON, sent with `Content-Type: application/json`. "
                f"Received: {abbreviate(received)}"
            )
        case "extra_forbidden":
            return f"{place} is unknown. Received: {abbreviate(received)}"
        case "union_tag_invalid":
            tags, received = error["ctx"]["expected_tags"], error["ctx"]["tag"]
            return f"{place} must be one of {tags}. Received: {abbreviate(received)}"
        case "value_error" if not names:
            return f"{place} contradicts itself: {error['ctx']['error']}."
        case "value_error":
            return f"{place}: {error['ctx']['error']}. Received: {abbreviate(received)}"
    return f"{place}: {error['msg']}. Received: {abbreviate(received)}"
