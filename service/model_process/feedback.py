"""Reads feedback, and scores its rows by the versions that it is about."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from service.model_process.answer import Request, VersionName, prepare
from service.model_process.codecs.json_body import parse_json
from service.model_process.query import Query
from service.model_process.recorder import PredictionRecorder, as_columns
from service.model_process.registry import ModelRegistry
from service.model_process.scores import score
from service.model_process.version import ServedVersion
from service.shared.database.tables import RecordedRow
from service.shared.errors import InvalidRequest
from service.shared.json_types import JsonObject
from service.shared.prediction_parameters import SIGNATURES, Parameters
from service.shared.settings import Settings
from tfbbb.base.texts import abbreviate

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
    scores: dict[str, np.ndarray]
    recorded: list[tuple[str, int]] | None


def score_feedback(
    body: bytes | bytearray,
    name: str,
    version: int | None,
    registry: ModelRegistry,
    recorder: PredictionRecorder,
    settings: Settings,
) -> Iterator[ScoredRequest]:
    """Scores the rows of a feedback request, for each version that it is about."""
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


def _query(document: JsonObject, fault: InvalidRequest | None = None) -> Query:
    rows, columns = document.get("instances"), document.get("inputs")
    return Query(rows, columns, SIGNATURES[0], Parameters(), document["targets"], fault)


def _score_recorded(
    targets: dict[tuple[str, int], object],
    name: str,
    version: int | None,
    registry: ModelRegistry,
    recorder: PredictionRecorder,
    settings: Settings,
) -> Iterator[ScoredRequest]:
    found = recorder.find(list(targets), name, version)
    by_version: dict[int, list[tuple[RecordedRow, object]]] = {}
    for place, target in targets.items():
        row = found[place]
        by_version.setdefault(row.number, []).append((row, target))
    for number, pairs in sorted(by_version.items()):
        yield _score_group(registry.version(name, number), pairs, settings)


def _score_group(
    served: ServedVersion,
    pairs: Sequence[tuple[RecordedRow, object]],
    settings: Settings,
) -> ScoredRequest:
    """Scores recorded rows by the version that predicted them."""
    manifest = served.load().manifest
    columns = as_columns([row.values for row, _ in pairs], manifest)
    query = _query({"inputs": columns, "targets": [target for _, target in pairs]})
    request, scores = _score(served, query, settings)
    places = [(row.prediction_id, row.row) for row, _ in pairs]
    return ScoredRequest(request, scores, places)


def _score(
    version: ServedVersion, query: Query, settings: Settings
) -> tuple[Request, dict[str, np.ndarray]]:
    model = version.load()
    name = VersionName(version.name, version.number)
    request = prepare(name, model.manifest, query, settings)
    return request, score(model, request)


def _read_predictions(values: object) -> dict[tuple[str, int], object]:
    """Returns targets by the id of the prediction and the number of the row."""
    if not isinstance(values, list) or not values:
        raise InvalidRequest(
            "`predictions` must be a list of at least one object with `id` and "
            f"`target`. Received: {abbreviate(values)}"
        )
    targets: dict[tuple[str, int], object] = {}
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
