"""Says in the words of this project what pydantic found wrong."""

from collections.abc import Iterable, Mapping
from typing import Any

from tfbbb.base.suggestions import did_you_mean
from tfbbb.base.texts import MODEL_NAME, abbreviate

_MOST_CHARACTERS = 100
# The names of FastAPI for the parts of a request, which clients do not use.
_PARTS = {"body", "path", "query", "header"}
_OBJECT = "must be an object with fields"
_LIST = "must be a list"
_NUMBER = "must be a number"
_WHOLE_NUMBER = "must be a whole number"
_FLAG = "must be true or false"
# What a value must be, by the type of pydantic's error. In braces is its context.
RULES = {
    "bool_parsing": _FLAG,
    "bool_type": _FLAG,
    "dict_type": _OBJECT,
    "enum": "must be {expected}",
    "extra_forbidden": "is unknown",
    "finite_number": "must be a finite number",
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "int_from_float": _WHOLE_NUMBER,
    "int_parsing": _WHOLE_NUMBER,
    "int_parsing_size": "must be a smaller number",
    "int_type": _WHOLE_NUMBER,
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "list_type": _LIST,
    "literal_error": "must be {expected}",
    "missing": "is missing",
    "model_attributes_type": _OBJECT,
    "model_type": _OBJECT,
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "string_type": "must be a text",
    "string_unicode": "must be a text in UTF-8",
    "too_long": "must have at most {max_length} entries",
    "too_short": "must have at least {min_length} entries",
    "tuple_type": _LIST,
    "union_tag_invalid": "must be one of {expected_tags}",
    "union_tag_not_found": "must have a field {discriminator}",
}
# What a text must be, by the regular expression that it does not match.
PATTERNS = {
    "^https?://[^/]+": "must begin with http:// or https://",
    f"^{MODEL_NAME}$": "must begin with a letter or a digit, and have at most 128 "
    "letters, digits, dots, hyphens and underscores",
    "^[0-9a-f]{24}$": "must be an id: 24 digits and letters from a to f",
    "^[0-9a-f]{64}$": "must be a SHA-256: 64 digits and letters from a to f",
    r"^[^\x00-\x1f\x7f]*$": "must not have line breaks, tabs or other control "
    "characters",
}


def describe_validation_error(
    error: Mapping[str, Any], within: Iterable[str] = (), known: Iterable[str] = ()
) -> str:
    """Describes the place of an error, the rule, and what was received."""
    path = field_path(error, within)
    place = f"The {(error['loc'] or ('body',))[0]}" if path is None else f"`{path}`"
    received = error["input"]
    match error["type"]:
        case "json_invalid":
            wrong = f"{error['ctx']['error']}, at character {error['loc'][1]}"
            return f"The body is not JSON: {wrong}."
        case "model_attributes_type" if isinstance(received, bytes):
            return (
                "The body must be JSON, sent with `Content-Type: application/json`. "
                f"Received: {abbreviate(received)}"
            )
        case "extra_forbidden":
            asked = did_you_mean(path, known)
            return f"{place} is unknown.{asked} Received: {abbreviate(received)}"
        case "union_tag_invalid":
            received = error["ctx"]["tag"]
        case "value_error" if path is None:
            return f"{place} contradicts itself: {error['ctx']['error']}."
        case "value_error":
            return f"{place}: {error['ctx']['error']}. Received: {abbreviate(received)}"
    return f"{place} {describe_rule(error)}. Received: {abbreviate(received)}"


def field_path(error: Mapping[str, Any], within: Iterable[str] = ()) -> str | None:
    """Returns the path of the field of an error, such as "model.likelihood"."""
    if error["type"] == "json_invalid":
        return None
    given = error["loc"]
    names = [*within, *(given[1:] if given and given[0] in _PARTS else given)]
    return ".".join(str(name)[:_MOST_CHARACTERS] for name in names) or None


def describe_rule(error: Mapping[str, Any]) -> str:
    """Returns the rule that a value breaks, such as "must be a number"."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "string_pattern_mismatch" and context["pattern"] in PATTERNS:
        return PATTERNS[context["pattern"]]
    if context.get("min_length") == 1:
        return "must not be empty"
    if kind in RULES:
        return RULES[kind].format_map({x: _as_text(y) for x, y in context.items()})
    return f"is wrong: {error['msg'].removeprefix('Value error, ')}"


def _as_text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
