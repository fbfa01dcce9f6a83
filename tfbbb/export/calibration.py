"""What calibrates the quantiles, intervals and prediction sets of an exported model."""

from tfbbb.base.texts import snake_case
from tfbbb.export.manifest import Manifest
from tfbbb.prediction.questions import Question


def describe_calibration(manifest: Manifest, question: Question) -> str:
    """Says what calibrates an answer at levels: conformal scores, the density, nothing.

    Conformal scores calibrate intervals and prediction sets alone. Quantiles are those
    of the predictive distribution, which a recalibration of the density may change.
    """
    recalibration = manifest.recalibration or {}
    config = recalibration.get("config", {})
    scores = config.get("scores")
    if scores is not None and question.of_summary:
        by = config.get("by")
        if isinstance(by, int):
            by = manifest.features[by].name
        groups = "" if by is None else f", by {by!r}"
        return f"conformal on {len(scores[0])} held-out rows{groups}"
    density = recalibration if scores is None else config.get("density") or {}
    name = density.get("class_name")
    if name is None:
        if question.needs_classes:
            return "none: probabilities of the predictive distribution"
        return "none: quantiles of the predictive distribution"
    # Of a name such as IsotonicPIT.
    method = snake_case(name).replace("_", " ").replace("pit", "PIT")
    num_rows = (manifest.recalibration_choice or {}).get("num_rows")
    return method if num_rows is None else f"{method} on {num_rows} held-out rows"
