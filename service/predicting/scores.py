"""Reads rows with the targets that came true, and scores them by a version."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from service.predicting.answer import Request, VersionName, check_finite, prepare
from service.predicting.codecs.json_rows import read_rows
from service.predicting.targets import check_all_usable
from service.predicting.version import ServedVersion
from service.shared.errors import InvalidRequest
from service.shared.settings import Settings
from tfbbb.base.types import JsonList

if TYPE_CHECKING:
    from tfbbb.export.exported_model import ExportedModel
    from tfbbb.prediction.result import Predictive


_KEYS = {"instances", "inputs", "targets"}
# Also the levels of the held-out figures.
LEVELS = (0.5, 0.9, 0.95)
# A target that the model takes for impossible must not make every later mean infinite.
_LEAST_LOG_PROB = -1e4


class ScoredRows(NamedTuple):
    """Rows of feedback that a version has scored, by the names of their scores."""

    version: int
    num_rows: int
    scores: dict[str, JsonList]


def score_feedback(
    body: bytes | bytearray, version: ServedVersion, settings: Settings
) -> ScoredRows:
    """Scores the rows of a request of feedback."""
    query = read_rows(body, _KEYS)
    if query.targets is None:
        raise InvalidRequest("The rows need `targets`, what came true for each.")
    model = version.load()
    name = VersionName(version.name, version.number)
    request = prepare(name, model.manifest, query, settings)
    scores = model.run(score, request)
    named = {name: values.tolist() for name, values in scores.items()}
    return ScoredRows(version.number, request.num_rows, named)


def score(model: "ExportedModel", request: Request) -> dict[str, np.ndarray]:
    """Scores the rows of a request by their targets."""
    assert request.targets is not None
    check_all_usable(request.targets)
    targets = request.targets.values
    prediction = model.predictive(request.inputs, request.num_samples)
    log_prob = np.maximum(prediction.log_prob(targets), _LEAST_LOG_PROB)
    of_kind = _score_numbers if request.manifest.classes is None else _score_sets
    scores = {"log_likelihood": log_prob, **of_kind(prediction, targets)}
    check_finite(scores, request)
    return scores


def _score_numbers(
    prediction: "Predictive", targets: np.ndarray
) -> dict[str, np.ndarray]:
    # Imports TensorFlow.
    from tfbbb.prediction.target_scores import cdf_step, crps_of_targets, in_intervals

    covered = np.mean(in_intervals(prediction, targets, LEVELS), axis=2)
    if prediction.censored:
        # Of a row that is still running nobody knows how wrong its mean is.
        return _coverage(covered)
    errors = prediction.mean - targets
    below, up_to = cdf_step(prediction, targets)
    return {
        "crps": np.mean(crps_of_targets(prediction, targets), axis=1),
        "squared_error": np.mean(np.square(errors), axis=1),
        "mean_absolute_error": np.mean(np.abs(errors), axis=1),
        **_coverage(covered),
        "pit": (np.asarray(below) + np.asarray(up_to)) / 2,
    }


def _score_sets(prediction: "Predictive", targets: np.ndarray) -> dict[str, np.ndarray]:
    from tfbbb.prediction.target_scores import brier_of_targets

    probabilities = np.asarray(prediction.probabilities, np.float64)
    rows = np.arange(len(targets))
    covered = [prediction.prediction_set(level)[rows, targets] for level in LEVELS]
    return {
        "accuracy": probabilities.argmax(axis=1) == targets,
        "brier_score": np.asarray(brier_of_targets(prediction, targets)),
        **_coverage(np.stack(covered, axis=1)),
    }


def _coverage(covered: np.ndarray) -> dict[str, np.ndarray]:
    names = (f"coverage_{100 * level:g}" for level in LEVELS)
    # orjson takes contiguous arrays only.
    return dict(zip(names, np.ascontiguousarray(covered.T), strict=True))
