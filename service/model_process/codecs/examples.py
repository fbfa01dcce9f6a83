"""Examples in JSON, the format of TensorFlow Serving's `:classify` and `:regress`."""

from collections.abc import Mapping

import numpy as np

from service.model_process.answer import Answer
from service.model_process.codecs.codec import Body
from service.model_process.codecs.json_body import parse_object
from service.model_process.codecs.json_rows import write_json
from service.model_process.query import (
    Query,
    read_parameters,
    read_signature,
    refuse_options,
)
from service.shared.errors import InvalidRequest
from service.shared.frames import Frame
from service.shared.json_types import JsonObject
from service.shared.prediction_parameters import SIGNATURES
from tfbbb.base.texts import abbreviate

# Names that TensorFlow Serving's examples give the signatures of these methods.
_METHODS = ("tensorflow/serving/classify", "tensorflow/serving/regress")
_KEYS = {"signature_name", "examples", "context", "parameters"}


def read(body: Body, options: Mapping[str, object]) -> Query:
    """Reads examples: features by name, those of `context` shared by all examples."""
    refuse_options(options)
    document, fault = parse_object(body, _KEYS)
    examples, context = document.get("examples"), document.get("context", {})
    if not (isinstance(examples, list) and examples):
        raise InvalidRequest(
            "The body needs `examples`, a list of at least one example. "
            f"Received: {abbreviate(examples)}"
        )
    shared = _features(context, "`context`")
    rows = [
        shared | _features(example, f"Example {place}")
        for place, example in enumerate(examples, start=1)
    ]
    for place, example in enumerate(examples, start=1):
        if twice := shared.keys() & example.keys():
            raise InvalidRequest(
                f"Example {place} has a feature that `context` has too. "
                f"Received: {abbreviate(min(twice))}"
            )
    name = document.get("signature_name")
    signature = read_signature(None if name in _METHODS else name)
    if signature not in ("serving_default", "predict"):
        raise InvalidRequest(
            "`:classify` and `:regress` have the signatures serving_default and "
            f"predict; ask `:predict` for others. Received: {signature}"
        )
    parameters = read_parameters(document.get("parameters"))
    return Query(rows, None, SIGNATURES[0], parameters, None, fault)


def write_classes(answer: Answer) -> Frame:
    """Writes the label and the probability of each class, per example."""
    classes = answer.request.manifest.classes
    if classes is None:
        raise InvalidRequest(
            "The model predicts numbers, not classes: ask `:regress` or `:predict`."
        )
    probabilities = answer.outputs["probabilities"]
    results = [list(zip(classes, row, strict=True)) for row in probabilities]
    return write_json({"results": results}, answer)


def write_values(answer: Answer) -> Frame:
    """Writes the mean of each example."""
    if "mean" not in answer.outputs:
        raise InvalidRequest(
            "The model predicts classes, not numbers: ask `:classify` or `:predict`."
        )
    mean = answer.outputs["mean"]
    assert isinstance(mean, np.ndarray)
    if mean[0].size != 1:
        raise InvalidRequest(
            f"The model predicts {mean[0].size} numbers, and `:regress` returns one "
            "per example: ask `:predict`."
        )
    return write_json({"results": mean.reshape(-1)}, answer)


def _features(example: object, name: str) -> JsonObject:
    """Returns the features of an example; a list of one value is the value."""
    if not isinstance(example, dict):
        raise InvalidRequest(
            f"{name} must be an object of features. Received: {abbreviate(example)}"
        )
    return {
        feature: value[0] if isinstance(value, list) and len(value) == 1 else value
        for feature, value in example.items()
    }
