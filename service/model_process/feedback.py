"""Reads feedback, and scores its rows by the versions that it is about."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from service.model_process.answer import Request, VersionName, prepare
from service.model_process.codecs.json_body import parse_json
from service.model_process.query import Query
from service.model_process.recorder import PredictionRecorder, as_columns
from service.model_process.registry import ModelRegistry
from service.model_process.scores import Array, score
from service.model_process.version import ServedVersion
from service.shared.errors import InvalidRequest
from service.shared.prediction_parameters import SIGNATURES, Parameters
from service.shared.settings import Settings
from tfbbb.abbreviation import abbreviate

_KEYS = {"instances", "inputs", "targets", "predictions"}
_KEYS_OF_ROW = {"id", "row", "target"}
_MOST_ROW = 2**31 - 1


@dataclass(frozen=True)
class ScoredRequest:
    """A request about rows of one version, with their scores.

    Args:
        request: The rows.
        scores: Their scores: see `service.model_process.scores.score`.
        recorded: The ids of their predictions with the numbers of the rows; None for
            rows that were given with their values.
    """

    request: Request
    scores: dict[str, Array]
    recorded: list[tuple[str, int]] | None


def score_feedback(
    body: bytes | bytearray,
    name: str,
    version: int | None,
    registry: ModelRegistry,
    recorder: PredictionRecorder,
    settings: Settings,
) -> Iterator[ScoredRequest]:
    """Scores the rows of a feedback request, for each version that it is about.

    Args:
        body: The request: `instances` or `inputs` with `targets`, or `predictions`.
        name: Name of the model.
        version: The version. If it is None, `latest` scores rows, and predictions are
            scored by the versions that made them.
        registry: The models.
        recorder: The recorded predictions.
        settings: Limits and defaults.

    Raises:
        InvalidRequest: If the body is not valid.
        UnknownPrediction: If a prediction is not recorded.
    """
    document, fault = parse_json(body)
    if not isinstance(document, dict):
        raise InvalidRequest("The body must be a JSON object.")
    if unknown := document.keys() - _KEYS:
        raise InvalidRequest(
            f"The body may hold {', '.join(sorted(_KEYS))}. "
            f"Received: {abbreviate(min(unknown))}"
        )
    given = [key for key in ("instances", "inputs", "predictions") if key in document]
    if len(given) != 1:
        raise InvalidRequest(
            "The body needs one of `instances`, a list of rows, `inputs`, columns, or "
            "`predictions`, ids of recorded predictions."
        )
    if given == ["predictions"]:
        if "targets" in document:
            raise InvalidRequest(
                "Beside `predictions` there is no `targets`: give each its `target`."
            )
        if fault is not None:
            raise fault
        known = _read_predictions(document["predictions"])
        yield from _score_recorded(known, name, version, registry, recorder, settings)
        return
    if document.get("targets") is None:
        raise InvalidRequest("The rows need `targets`, what came true for each.")
    query = _query(document, fault)
    request, scores = _score(registry.version(name, version), query, settings)
    yield ScoredRequest(request, scores, None)


def _query(document: dict[str, Any], fault: InvalidRequest | None = None) -> Query:
    rows, columns = document.get("instances"), document.get("inputs")
    return Query(rows, columns, SIGNATURES[0], Parameters(), document["targets"], fault)


def _score_recorded(
    targets: dict[tuple[str, int], Any],
    name: str,
    version: int | None,
    registry: ModelRegistry,
    recorder: PredictionRecorder,
    settings: Settings,
) -> Iterator[ScoredRequest]:
    rows = recorder.find(list(targets), name, version)
    places = sorted(targets, key=lambda place: rows[place].number)
    for number, group in itertools.groupby(places, lambda place: rows[place].number):
        of_version = list(group)
        served = registry.version(name, number)
        manifest = served.load().manifest
        values = [rows[place].values for place in of_version]
        given = [targets[place] for place in of_version]
        query = _query({"inputs": as_columns(values, manifest), "targets": given})
        request, scores = _score(served, query, settings)
        yield ScoredRequest(request, scores, of_version)


def _score(
    version: ServedVersion, query: Query, settings: Settings
) -> tuple[Request, dict[str, Array]]:
    model = version.load()
    name = VersionName(version.name, version.number)
    request = prepare(name, model.manifest, query, settings)
    return request, score(model, request)


def _read_predictions(values: Any) -> dict[tuple[str, int], Any]:
    """Returns targets by the id of the prediction and the number of the row."""
    if not isinstance(values, list) or not values:
        raise InvalidRequest(
            "`predictions` must be a list of at least one object with `id` and "
            f"`target`. Received: {abbreviate(values)}"
        )
    targets: dict[tuple[str, int], Any] = {}
    for place, value in enumerate(values, start=1):
        if not isinstance(value, dict) or not {"id", "target"} <= value.keys():
            raise InvalidRequest(
                f"Prediction {place} must be an object with `id` and `target`. "
                f"Received: {abbreviate(value)}"
            )
        if unknown := value.keys() - _KEYS_OF_ROW:
            raise InvalidRequest(
                f"Prediction {place} may hold {', '.join(sorted(_KEYS_OF_ROW))}. "
                f"Received: {abbreviate(min(unknown))}"
            )
        prediction_id, row = value["id"], value.get("row", 1)
        is_row = isinstance(row, int) and not isinstance(row, bool)
        if not isinstance(prediction_id, str) or "\0" in prediction_id:
            raise InvalidRequest(
                f"Prediction {place}: `id` must be the `prediction_id` of an answer. "
                f"Received: {abbreviate(prediction_id)}"
            )
        if not is_row or not 1 <= row <= _MOST_ROW:
            raise InvalidRequest(
                f"Prediction {place}: `row` must be the number of a row, from 1. "
                f"Received: {abbreviate(row)}"
            )
        if (prediction_id, row) in targets:
            raise InvalidRequest(
                f"Prediction {place}: row {row} of {prediction_id!r:.100} has a target "
                "already; give each row once."
            )
        targets[prediction_id, row] = value["target"]
    return targets
