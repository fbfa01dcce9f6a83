"""Withholds answers about rows of which a model is too uncertain."""

from dataclasses import replace

import numpy as np

from service.model_process.answer import FAMILIARITY, PERCENTILE, Answer, Request
from service.shared.errors import InvalidRequest
from service.shared.json_types import JsonList
from tfbbb.export.manifest import Manifest
from tfbbb.export.unlike_rows import is_unlike

ABSTAINED = "abstained"
# What rows without an answer keep.
KEPT = (FAMILIARITY, PERCENTILE)


def check_abstention(request: Request) -> None:
    """Checks that the model can abstain as a request asks."""
    parameters = request.query.parameters
    if parameters.abstain_above is None and parameters.abstain_by is None:
        return
    detector = request.detector
    if detector is None or not request.manifest.detects(detector):
        raise InvalidRequest(
            "`parameters.abstain_above` needs the familiarity of rows, or (with "
            "`abstain_by`) the epistemic uncertainty of rows that the model was not "
            f"trained on, and this version has no {detector or 'such reference'}: "
            "train it by a job, or export it with `model.familiarity` or "
            "`epistemic_reference`."
        )
    if not request.asks_moments:
        raise InvalidRequest(
            "`parameters.abstain_above` belongs to the signatures `serving_default` "
            f"and `predict`. Received: {request.query.signature}"
        )


def abstain(answer: Answer) -> Answer:
    """Withholds answers about rows above the limit of the request or the version.

    Rows above the limit of the request, or else of the version, get the reason as
    `abstained`, and no other output but familiarity and percentile: NaN, empty texts
    and sets. The familiarity decides, or the epistemic uncertainty if the request says
    so or the version has no familiarity.
    """
    request, outputs = answer.request, answer.outputs
    detector, level = request.detector, request.abstain_above
    if detector is None or level is None or not request.asks_moments:
        return answer
    if detector == "familiarity":
        familiarity = np.asarray(outputs[FAMILIARITY])
        above = _are_unfamiliar(familiarity, request.manifest, level)
        reason = f"The row is less familiar than {level:g} % of rows like those "
        reason += "of the training."
    else:
        above = np.asarray(outputs[PERCENTILE]) > level
        reason = f"The epistemic uncertainty is above that of {level:g} % of rows that "
        reason += "the model was not trained on."
    if above.any():
        outputs = {
            name: values if name in KEPT else _without(values, above)
            for name, values in outputs.items()
        }
    reasons = [reason if row else "" for row in above]
    return replace(answer, outputs=outputs | {ABSTAINED: reasons})


def _are_unfamiliar(
    familiarity: np.ndarray, manifest: Manifest, level: float
) -> np.ndarray:
    if level >= 100:
        return np.zeros(len(familiarity), bool)
    assert manifest.familiarity is not None
    return is_unlike(familiarity, manifest.familiarity.num_rows, 1.0 - 0.01 * level)


def _without(values: np.ndarray | JsonList, above: np.ndarray) -> np.ndarray | JsonList:
    """Returns the values of rows, without those of the rows above the limit."""
    if isinstance(values, np.ndarray):
        kept = values.astype(np.result_type(values, np.float32))
        kept[above] = np.nan
        return kept
    pairs = zip(above, values, strict=True)
    return [_empty(value) if row else value for row, value in pairs]


def _empty(value: str | JsonList) -> str | JsonList:
    """Returns no text in place of a text, and an empty set in place of each set."""
    return "" if isinstance(value, str) else [[] for _ in value]
