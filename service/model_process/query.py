"""Parses the body of a prediction request."""

import gc
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from pydantic import ValidationError

from service.shared.errors import InvalidRequest
from service.shared.prediction_parameters import (
    SIGNATURES,
    DrawParameters,
    Parameters,
)
from service.shared.validation import describe_validation_error
from tfbbb.abbreviation import abbreviate
from tfbbb.export.manifest import Feature
from tfbbb.prediction import questions
from tfbbb.prediction.questions import Question

# Inputs of the signatures other than the table, and the parameters that set them.
_TENSORS = {"num_samples": "num_samples", "seed": "seed"}
_MOST_CHARACTERS = 100
# Largest body, in bytes, that is parsed again to locate a mistake.
_MOST_READ_AGAIN = 2**20
_KEYS = {"signature_name", "instances", "inputs", "targets", "parameters"}


@dataclass(frozen=True)
class Query:
    """A prediction request, before it is validated against a model.

    Args:
        rows: The value of `instances`, or None.
        columns: The value of `inputs`, or None.
        signature: Name of the signature.
        parameters: The parameters of the prediction.
        targets: The value of `targets`, or None.
        fault: The JSON error of a body that Python's parser accepts. It is raised
            unless an error in the values locates the mistake better.
    """

    rows: Any
    columns: Any
    signature: str
    parameters: DrawParameters
    targets: Any
    fault: InvalidRequest | None

    def asks(self, question: Question) -> bool:
        """Whether the request asks the question."""
        if question.takes_targets:
            return self.targets is not None
        return self.parameters.asks(question)

    def move_tensor_parameters(self, features: Sequence[Feature]) -> "Query":
        """Moves parameters that TensorFlow Serving takes as tensors to `parameters`.

        Raises:
            InvalidRequest: If their values are not valid.
        """
        if not isinstance(self.columns, dict):
            return self
        names = {feature.name for feature in features}
        tensors = _TENSORS | {"levels": _levels_parameter(self.signature)}
        given = tensors.keys() & self.columns.keys() - names
        moved = self
        if _takes_targets(self.signature) and "targets" in self.columns.keys() - names:
            others = {k: v for k, v in self.columns.items() if k != "targets"}
            targets = self.columns["targets"]
            moved = replace(self, columns=others, targets=targets)
        if not given:
            return moved
        parameters = self.parameters.model_dump(exclude_unset=True) | {
            tensors[tensor]: self.columns[tensor] for tensor in given
        }
        columns = {k: v for k, v in moved.columns.items() if k not in given}
        return replace(moved, columns=columns, parameters=_read_parameters(parameters))

    @property
    def by_rows(self) -> bool:
        """Whether the response has one object per row, rather than columns."""
        return self.columns is None


def parse_query(body: bytes | bytearray) -> Query:
    """Parses the body of a `:predict` request; does not validate the table.

    Raises:
        InvalidRequest: If the body is not valid.
    """
    document, fault = read_json(body)
    if not isinstance(document, dict):
        raise InvalidRequest("The body must be a JSON object.")
    if unknown := document.keys() - _KEYS:
        raise InvalidRequest(
            f"The body may hold {', '.join(sorted(_KEYS))}. "
            f"Received: {abbreviate(min(unknown))}"
        )
    rows, columns = document.get("instances"), document.get("inputs")
    if (rows is None) == (columns is None):
        raise InvalidRequest(
            "The body needs either `instances`, a list of rows, or `inputs`, columns."
        )
    # TensorFlow Serving accepts the empty name for the default signature too.
    signature = document.get("signature_name", "")
    if signature in ("", None):
        signature = SIGNATURES[0]
    if signature not in SIGNATURES:
        raise InvalidRequest(
            f"`signature_name` must be one of {', '.join(SIGNATURES)}. "
            f"Received: {abbreviate(signature)}"
        )
    parameters = document.get("parameters")
    parameters = Parameters() if parameters is None else _read_parameters(parameters)
    targets = document.get("targets")
    return Query(rows, columns, signature, parameters, targets, fault)


def read_json(body: bytes | bytearray) -> tuple[Any, InvalidRequest | None]:
    """Parses JSON; returns the document, and the fault that only Python accepts.

    Raises:
        InvalidRequest: If the body is not JSON.
    """
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
            body, parse_constant=_NotANumber, parse_float=_number, parse_int=_number
        )
    except (ValueError, RecursionError):
        raise fault from None
    return document, fault


@dataclass(frozen=True)
class _NotANumber:
    """Represents a token such as `NaN`, `Infinity` or `1e999`."""

    token: str

    def __repr__(self) -> str:
        return self.token


def _number(token: str) -> float | _NotANumber:
    value = float(token)
    if not math.isfinite(value):
        return _NotANumber(token)
    return int(token) if token.lstrip("-").isdigit() else value


def _takes_targets(signature: str) -> bool:
    """Whether a signature has an input `targets`."""
    asked = [x.name for x in questions.served_questions() if x.takes_targets]
    return signature in asked


def _levels_parameter(signature: str) -> str:
    """Returns the parameter that the input `levels` of a signature sets."""
    asked = [x for x in questions.served_questions() if x.takes_levels]
    names = {question.name: question.parameter for question in asked}
    return names.get(signature, "quantiles")


def _read_parameters(parameters: Any) -> DrawParameters:
    try:
        return Parameters.model_validate(parameters)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "extra_forbidden":
            place = f"parameters.{first['loc'][0]}"[:_MOST_CHARACTERS]
            known = ", ".join(Parameters.model_fields)
            raise InvalidRequest(
                f"`{place}` is unknown; the parameters are {known}."
            ) from None
        raise InvalidRequest(
            describe_validation_error(first, within=["parameters"])
        ) from None
