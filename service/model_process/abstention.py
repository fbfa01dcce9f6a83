"""Withholds answers about rows of which a model is too uncertain."""

from dataclasses import replace

import numpy as np

from service.model_process.answer import Answer, Request
from service.shared.errors import InvalidRequest
from service.shared.json_types import JsonList

PERCENTILE = "epistemic_percentile"
ABSTAINED = "abstained"


def check_abstention(request: Request) -> None:
    """Checks that the model can abstain as a request asks.

    Raises:
        InvalidRequest: The version has no reference, or the request asks for a
            signature other than the moments.
    """
    level = request.query.parameters.abstain_above
    if level is None:
        return
    if request.manifest.epistemic_reference is None:
        raise InvalidRequest(
            "`parameters.abstain_above` needs the epistemic uncertainty of rows that "
            "the model was not trained on, which this version does not have: train it "
            "by a job with held-out rows or with an even number of members, or export "
            "it with `epistemic_reference`."
        )
    if not request.asks_moments:
        raise InvalidRequest(
            "`parameters.abstain_above` belongs to the signatures `serving_default` "
            f"and `predict`. Received: {request.query.signature}"
        )


def abstain(answer: Answer) -> Answer:
    """Adds the percentile of each row's epistemic uncertainty, and withholds answers.

    Rows above the limit of the request, or else of the version, have the reason as
    `abstained`, and no other output but the percentile: NaN, empty texts and sets.
    """
    request = answer.request
    reference = request.manifest.epistemic_reference
    if reference is None or not request.asks_moments:
        return answer
    percentiles = reference.percentiles(answer.outputs)
    level = request.query.parameters.abstain_above
    if level is None:
        level = reference.abstain_above
    outputs = answer.outputs | {PERCENTILE: percentiles}
    if level is None:
        return replace(answer, outputs=outputs)
    above = percentiles > level
    if above.any():
        outputs = {
            name: values if name == PERCENTILE else _without(values, above)
            for name, values in outputs.items()
        }
    reasons = [
        f"The epistemic uncertainty is above that of {level:g} % of rows that the "
        "model was not trained on."
        if row
        else ""
        for row in above
    ]
    return replace(answer, outputs=outputs | {ABSTAINED: reasons})


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
