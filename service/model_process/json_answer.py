"""Writes answers as JSON."""

from collections.abc import Sequence
from typing import Any

import orjson

from service.model_process.answer import Answer, Outputs, swap_draws
from tfbbb.prediction import questions


def write_json(answer: Answer) -> bytes:
    """Returns the JSON body of the response to a `:predict` request."""
    request = answer.request
    if request.query.by_rows:
        body = _by_rows(answer.outputs, answer.warnings)
    else:
        body = _by_columns(answer.outputs, answer.warnings)
    body |= {
        "model_name": request.version.name,
        "model_version": str(request.version.number),
        "num_samples": request.num_samples,
    }
    if (classes := request.model.manifest.classes) is not None:
        body["classes"] = classes
    if answer.prediction_id is not None:
        body["prediction_id"] = answer.prediction_id
    return orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)


def _by_rows(outputs: Outputs, warnings: Sequence[list[str]]) -> dict[str, Any]:
    """Formats rows as TensorFlow Serving: bare values if there is one output.

    Only rows with warnings have them, and bare values have none.
    """
    if len(outputs) == 1:
        return {"predictions": list(*outputs.values())}
    names = list(outputs)
    rows = [
        dict(zip(names, row, strict=True))
        for row in zip(*outputs.values(), strict=True)
    ]
    for row, sentences in zip(rows, warnings, strict=True):
        if sentences:
            row["warnings"] = sentences
    return {"predictions": rows}


def _by_columns(outputs: Outputs, warnings: list[list[str]]) -> dict[str, Any]:
    """Formats columns as TensorFlow Serving, with draws before rows.

    If any row has warnings, they are a column too, beside several others.
    """
    for question in questions.served_questions():
        for name in question.outputs:
            if (values := outputs.get(name)) is not None:
                outputs = outputs | {name: swap_draws(values, question)}
    if len(outputs) == 1:
        return {"outputs": next(iter(outputs.values()))}
    if any(warnings):
        return {"outputs": {**outputs, "warnings": warnings}}
    return {"outputs": outputs}
