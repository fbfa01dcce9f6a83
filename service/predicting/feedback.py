"""Reads rows with what came true, and scores them by the version."""

import numpy as np

from service.predicting.answer import Request, VersionName, prepare
from service.predicting.codecs.json_body import parse_object
from service.predicting.query import Query
from service.predicting.scores import score
from service.predicting.version import ServedVersion
from service.shared.errors import InvalidRequest
from service.shared.prediction_parameters import Parameters
from service.shared.settings import Settings

_KEYS = {"instances", "inputs", "targets"}


def score_feedback(
    body: bytes | bytearray, version: ServedVersion, settings: Settings
) -> tuple[Request, dict[str, np.ndarray]]:
    """Returns the rows of a request of feedback, and their scores."""
    document, fault = parse_object(body, _KEYS)
    rows, columns = document.get("instances"), document.get("inputs")
    if (rows is None) == (columns is None):
        raise InvalidRequest(
            "The body needs either `instances`, a list of rows, or `inputs`, columns."
        )
    targets = document.get("targets")
    if targets is None:
        raise InvalidRequest("The rows need `targets`, what came true for each.")
    query = Query(rows, columns, Parameters(), targets, fault)
    model = version.load()
    name = VersionName(version.name, version.number)
    request = prepare(name, model.manifest, query, settings)
    return request, model.run(score, request)
