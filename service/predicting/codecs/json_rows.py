"""Rows and columns in JSON, the format of TensorFlow Serving's `:predict`."""

from collections.abc import Mapping, Sequence

import orjson

from service.predicting.answer import Answer, Outputs, swap_draws
from service.predicting.codecs.codec import Body, Written, response
from service.predicting.codecs.json_body import parse_object
from service.predicting.query import (
    Query,
    check_signature,
    read_parameters,
    refuse_options,
)
from service.shared.errors import InvalidRequest
from service.shared.json_types import JsonObject
from tfbbb.prediction import questions

_KEYS = {"signature_name", "instances", "inputs", "targets", "parameters"}


def read(body: Body, options: Mapping[str, object]) -> Query:
    """Reads the body of a `:predict` request; does not validate the table."""
    refuse_options(options)
    document, fault = parse_object(body, _KEYS)
    rows, columns = document.get("instances"), document.get("inputs")
    if (rows is None) == (columns is None):
        raise InvalidRequest(
            "The body needs either `instances`, a list of rows, or `inputs`, columns."
        )
    check_signature(document.get("signature_name"))
    parameters = read_parameters(document.get("parameters"))
    return Query(rows, columns, parameters, document.get("targets"), fault)


def write(answer: Answer) -> Written:
    """Writes rows as rows, and columns as columns, and what they are of."""
    if answer.request.query.by_rows:
        body = _by_rows(answer.outputs, answer.warnings)
    else:
        body = _by_columns(answer.outputs, answer.warnings)
    request = answer.request
    body |= {
        "model_name": request.version.name,
        "model_version": str(request.version.number),
        "num_samples": request.num_samples,
    }
    if (classes := request.manifest.classes) is not None:
        body["classes"] = classes
    if calibration := answer.calibration:
        body["calibration"] = calibration
    content = orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)
    return response(content, "application/json")


def _by_rows(outputs: Outputs, warnings: Sequence[list[str]]) -> JsonObject:
    """Formats rows as TensorFlow Serving; only rows with warnings have them."""
    names = list(outputs)
    rows = [
        dict(zip(names, row, strict=True))
        for row in zip(*outputs.values(), strict=True)
    ]
    for row, sentences in zip(rows, warnings, strict=True):
        if sentences:
            row["warnings"] = sentences
    return {"predictions": rows}


def _by_columns(outputs: Outputs, warnings: list[list[str]]) -> JsonObject:
    """Formats columns as TensorFlow Serving, with draws before rows.

    If any row has warnings, they are a column too.
    """
    for question in questions.served_questions():
        for name in question.outputs:
            if (values := outputs.get(name)) is not None:
                outputs = outputs | {name: swap_draws(values, question)}
    if any(warnings):
        return {"outputs": {**outputs, "warnings": warnings}}
    return {"outputs": outputs}
