"""Parses bodies in JSON."""

import base64
import gc
import json
import math
from dataclasses import dataclass
from typing import Any

import orjson

from service.predicting.codecs.codec import Body
from service.shared.errors import InvalidRequest
from service.shared.prediction_parameters import Parameters
from tfbbb.base.suggestions import did_you_mean
from tfbbb.base.texts import abbreviate

# Largest body, in bytes, that is parsed again to locate a mistake.
_MOST_READ_AGAIN = 2**20


def parse_json(body: Body | memoryview) -> tuple[Any, InvalidRequest | None]:
    """Parses a body."""
    # Parsed JSON has no cycles. For a body of 32 MB, the searches of the garbage
    # collector for cycles take ten times as long as parsing.
    gc.disable()
    try:
        return orjson.loads(body), None
    except orjson.JSONDecodeError as error:
        fault = InvalidRequest(f"The body is not JSON: {error}.")
    finally:
        gc.enable()
    # Clients often send NaN or Infinity. Python's parser accepts these, so that an
    # error can name the row, but takes a minute and gigabytes where orjson takes 1 s.
    if len(body) > _MOST_READ_AGAIN:
        raise fault
    try:
        document = json.loads(
            bytes(body),
            parse_constant=NotANumber,
            parse_float=_number,
            parse_int=_number,
        )
    except (ValueError, RecursionError):
        raise fault from None
    return document, fault


def parse_object(body: Body, keys: set[str]) -> tuple[Any, InvalidRequest | None]:
    """Parses a body as `parse_json`, an object that may have the given keys.

    Each `{"b64": "..."}` becomes the text that it encodes.
    """
    document, fault = parse_json(body)
    if not isinstance(document, dict):
        raise InvalidRequest("The body must be a JSON object.")
    if unknown := document.keys() - keys:
        name = min(unknown)
        # Parameters belong one level deeper.
        known = [*sorted(keys), *(f"parameters.{x}" for x in Parameters.model_fields)]
        raise InvalidRequest(
            f"The body may hold {', '.join(sorted(keys))}.{did_you_mean(name, known)} "
            f"Received: {abbreviate(name)}"
        )
    if b'"b64"' in body:
        document = _decode_base64(document)
    return document, fault


def _decode_base64(part: object) -> Any:
    """Returns a part of a document whose binary values are texts."""
    if isinstance(part, list):
        return [_decode_base64(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    if part.keys() != {"b64"} or not isinstance(part["b64"], str):
        return {name: _decode_base64(inner) for name, inner in part.items()}
    try:
        return base64.b64decode(part["b64"], validate=True).decode()
    except ValueError:
        raise InvalidRequest(
            "A binary value `b64` must be text in UTF-8, encoded in base64. "
            f"Received: {abbreviate(part['b64'])}"
        ) from None


@dataclass(frozen=True)
class NotANumber:
    """Represents a token such as `NaN`, `Infinity` or `1e999`."""

    token: str

    def __repr__(self) -> str:
        return self.token


def _number(token: str) -> float | NotANumber:
    value = float(token)
    if not math.isfinite(value):
        return NotANumber(token)
    return int(token) if token.lstrip("-").isdigit() else value
