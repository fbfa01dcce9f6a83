"""Rows and columns in JSON, the format of TensorFlow Serving's `:predict`."""

import gc
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson

from service.predicting.answer import Answer, Outputs
from service.predicting.codecs.codec import JSON, Body, Written
from service.predicting.query import Parameters, Query, check_signature, read_parameters
from service.shared.errors import InvalidRequest
from tfbbb.base.suggestions import did_you_mean
from tfbbb.base.texts import abbreviate
from tfbbb.base.types import JsonObject

_KEYS = {"signature_name", "instances", "inputs", "targets", "parameters"}
# In the bodies of clients, but not in JSON.
_NOT_JSON = (b"NaN", b"Infinity")


def parse_json(body: Body | memoryview) -> Any:
    """Parses a body."""
    # Parsed JSON has no cycles. For a body of 32 MB, the searches of the garbage
    # collector for cycles take ten times as long as parsing.
    gc.disable()
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        advice = ""
        if any(token in bytes(body) for token in _NOT_JSON):
            advice = " JSON has no NaN or Infinity; a missing value is null."
        raise InvalidRequest(f"The body is not JSON: {error}.{advice}") from None
    finally:
        gc.enable()


def read(body: Body, options: Mapping[str, object]) -> Query:
    """Reads the body of a `:predict` request; does not validate the table."""
    if options:
        raise InvalidRequest(
            "A request in JSON has its parameters in the body, in `parameters`. "
            f"Received: {abbreviate(min(options))} in the URL"
        )
    return read_rows(body, _KEYS)


def read_rows(body: Body, keys: set[str]) -> Query:
    """Reads a body, an object that may have the given keys."""
    document = parse_json(body)
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
    rows, columns = document.get("instances"), document.get("inputs")
    if (rows is None) == (columns is None):
        raise InvalidRequest(
            "The body needs either `instances`, a list of rows, or `inputs`, columns."
        )
    check_signature(document.get("signature_name"))
    parameters = read_parameters(document.get("parameters"))
    return Query(rows, columns, parameters, document.get("targets"))


def write(answer: Answer) -> Written:
    """Writes rows as rows, and columns as columns, and what they are of."""
    by_rows = answer.request.query.by_rows
    body = _by_rows(answer) if by_rows else _by_columns(answer)
    body |= answer.description
    return Written(orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY), JSON)


def _by_rows(answer: Answer) -> JsonObject:
    """Formats rows as TensorFlow Serving; only rows with warnings have them."""
    outputs = answer.outputs
    names = list(outputs)
    rows = [
        dict(zip(names, row, strict=True))
        for row in zip(*outputs.values(), strict=True)
    ]
    for row, sentences in zip(rows, answer.warnings, strict=True):
        if sentences:
            row["warnings"] = sentences
    return {"predictions": rows}


def _by_columns(answer: Answer) -> JsonObject:
    """Formats columns as TensorFlow Serving, with draws before rows."""
    outputs: Outputs = dict(answer.outputs)
    for question in answer.request.asked:
        if question.draws_first:
            for name in question.outputs:
                drawn = np.swapaxes(outputs[name], 0, 1)
                outputs[name] = np.ascontiguousarray(drawn)
    if any(answer.warnings):
        outputs["warnings"] = answer.warnings
    return {"outputs": outputs}
