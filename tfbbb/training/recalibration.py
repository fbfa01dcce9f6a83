"""Measures and calibrates a model on rows that its training did not use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tfbbb.base.row_weights import resampled
from tfbbb.base.types import Config, Structure
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.judging.drift_reference import DriftReference, drift_scores
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction import Predictive
from tfbbb.prediction import recalibration as recalibrations
from tfbbb.prediction.recalibration import (
    ConformalIntervals,
    ConformalSets,
    Recalibration,
)
from tfbbb.prediction.recalibration.choice import choose, describe
from tfbbb.prediction.recalibration.factors import scaled, scaling
from tfbbb.prediction.recalibration.fitting import labels_of
from tfbbb.prediction.recalibration.recalibration import IDENTITY
from tfbbb.prediction.target_scores import cdf_step, in_boxes, in_intervals
from tfbbb.scores.metrics import (
    brier_score,
    calibration_error,
    concordance,
    expected_calibration_error,
    integrated_brier_score,
)
from tfbbb.tables import Schema
from tfbbb.training.spec import SpecError
from tfbbb.training.spec.families import RecalibrationPart
from tfbbb.training.temperature_choice import TemperatureChoice

_CONFORMAL = {
    "conformal_intervals": ConformalIntervals,
    "conformal_sets": ConformalSets,
}
# Of the intervals whose coverage is measured.
LEVELS = (0.5, 0.9, 0.95)
_NOT_ASKED = "The job asks for no recalibration."
_CUT_OFF = "Rows that were cut off do not tell how far a recalibration must go."
_NO_TIME = "`max_seconds` left no time to choose a recalibration."


@dataclass(frozen=True)
class Calibrated:
    """How well a model predicts held-out rows, as it is recalibrated.

    If there is a recalibration, each row is predicted and scored by one that was fitted
    to other rows. The choice says what was tried, as plain JSON values: see
    `tfbbb.recalibration.choose`; `before` has the figures without a recalibration.
    """

    metrics: Mapping[str, float]
    choice: Config
    prediction: Predictive


def make_recalibration(
    part: RecalibrationPart, likelihood: Likelihood, schema: Schema
) -> Recalibration | Literal["auto"] | None:
    """Makes the recalibration of a spec, not fitted; None for none."""
    by = getattr(part, "by", None)
    if by is not None and by not in [column.name for column in schema.features]:
        raise SpecError(
            "The groups of a recalibration must be told apart by a feature. "
            f"Received: by={by!r}"
        )
    if part.name == "none":
        return None
    if part.name == "auto":
        return "auto"
    if schema.event is not None:
        raise SpecError(
            "Times that may be cut off have no recalibration; leave `recalibration` "
            f"out. Received: recalibration={part.name!r}",
            "recalibration",
        )
    part.check_task(schema.task)
    made: Recalibration = recalibrations.get(part.name)
    density = getattr(part, "density", None)
    if density is not None:
        made = _CONFORMAL[part.name](density=recalibrations.get(density))
    try:
        made.check(likelihood)
    except ValueError as error:
        raise SpecError(
            f"The recalibration does not suit the target: {error}"
        ) from None
    return made


def calibrate(
    model: BayesianModel,
    part: RecalibrationPart,
    schema: Schema,
    inputs: Structure,
    targets: np.ndarray,
    crossed: TemperatureChoice | None = None,
    weights: np.ndarray | None = None,
    together: np.ndarray | None = None,
    in_haste: bool = False,
) -> Calibrated:
    """Recalibrates a model by a spec, in haste by one factor, and measures it."""
    method = make_recalibration(part, model.likelihood, schema)
    if schema.event is not None and method == "auto":
        method = None
    in_haste = in_haste and method == "auto"
    if in_haste:
        factor = scaling(model.likelihood)
        method = None if factor is None else factor()
    prediction = model.predictive(inputs) if crossed is None else crossed.prediction
    before = prediction_figures(prediction, targets, weights)
    name = getattr(part, "by", None)
    asked = {"method": part.name} | ({} if name is None else {"by": name})
    if method is None or not np.all(np.isfinite(list(before.values()))):
        reason = _NO_TIME if in_haste else _NOT_ASKED
        if schema.event is not None and part.name != "none":
            reason = _CUT_OFF
        choice = {"chosen": "none", "reason": reason}
        return Calibrated(before, {**asked, **choice}, prediction)
    by = None if name is None else _input_of(name, schema)
    labels = None if by is None else labels_of(model, inputs, by)
    options: Config = {"by": by, "labels": labels, "together": together}
    made = choose(
        model.likelihood, prediction, targets, method, **options, weights=weights
    )
    model.recalibration = made.recalibration
    figures = before
    if made.recalibration is not None:
        figures = prediction_figures(made.prediction, targets, weights)
    report = {**asked, **made.report, "before": before}
    if in_haste:
        report["reason"] = _NO_TIME
    if crossed is not None:
        report |= _extrapolate(model, crossed, report["reason"])
    return Calibrated(figures, report, made.prediction)


def _extrapolate(
    model: BayesianModel, crossed: TemperatureChoice, reason: str
) -> dict[str, str]:
    """Recalibrates the mixture of all members by rows that some of them predicted."""
    if crossed.gain == 1.0:
        return {}
    made = model.recalibration or IDENTITY
    model.recalibration = scaled(
        made, model.likelihood, crossed.gain, crossed.gain_of_intervals
    )
    better = "The mixture of all members predicts better than those that left out a row"
    if made.density == IDENTITY:
        # The reason says why the density of the others is not recalibrated.
        reason = (
            f"{better}: its factor is {crossed.gain:.3g}, and theirs is 1. About them: "
            f"{reason}"
        )
    else:
        reason = f"{reason} {better}: its factor is {crossed.gain:.3g} times theirs."
    return {"chosen": describe(model.recalibration), "reason": reason}


def _input_of(name: str, schema: Schema) -> str | int:
    """Returns the name of an input column, or its index in the input matrix."""
    if schema.input_format != "matrix":
        return name
    return [column.name for column in schema.features].index(name)


def prediction_figures(
    prediction: Predictive,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
) -> dict[str, float]:
    """Computes `TrainedTable.metrics` of a prediction of held-out rows."""
    log_likelihood = float(np.average(prediction.log_prob(targets), weights=weights))
    if hasattr(prediction, "probabilities"):
        figures = _classification_figures(prediction, targets, weights)
    else:
        figures = _regression_figures(prediction, targets, weights)
    return {**figures, "log_likelihood": log_likelihood, "nll": -log_likelihood}


def drift_reference(
    prediction: Predictive,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
) -> DriftReference:
    """Returns the scores with which the service will compare rows of feedback."""
    pit = None
    is_number = not hasattr(prediction, "probabilities")
    if is_number and not getattr(prediction, "censored", False):
        below, up_to = (np.asarray(x) for x in cdf_step(prediction, targets))
        pit = (below + up_to) / 2
    scores = drift_scores(prediction.log_prob(targets), pit)
    return DriftReference(scores if weights is None else scores[resampled(weights)])


def _regression_figures(
    prediction: Any, targets: np.ndarray, weights: np.ndarray | None
) -> dict[str, float]:
    if getattr(prediction, "censored", False):
        scores = integrated_brier_score(prediction, targets, per_row=True)
        found = concordance(prediction, targets)
        return {
            "concordance": 0.5 if found is None else found,
            "integrated_brier_score": float(np.average(scores, weights=weights)),
            **_coverage(prediction, targets, weights),
        }
    differences, joint = prediction.mean - targets, {}
    if targets.shape[1] > 1:
        # In units of the spread of each.
        differences = differences / targets.std(axis=0)
        (held,) = in_boxes(prediction, targets, [0.9]).T
        joint["joint_coverage_90"] = float(np.average(held, weights=weights))
    errors = np.mean(np.square(differences), axis=1)
    distances = np.mean(np.abs(differences), axis=1)
    return {
        "rmse": float(np.sqrt(np.average(errors, weights=weights))),
        "mean_absolute_error": float(np.average(distances, weights=weights)),
        **_coverage(prediction, targets, weights),
        **joint,
        "calibration_error": calibration_error(
            prediction, targets, sample_weight=weights
        ),
    }


def _coverage(
    prediction: Any, targets: np.ndarray, weights: np.ndarray | None
) -> dict[str, float]:
    inside = np.mean(in_intervals(prediction, targets, LEVELS), axis=2)
    shares = np.average(inside, axis=0, weights=weights)
    return {
        f"coverage_{100 * level:g}": float(share)
        for level, share in zip(LEVELS, shares, strict=True)
    }


def _classification_figures(
    prediction: Any, targets: np.ndarray, weights: np.ndarray | None
) -> dict[str, float]:
    probabilities = np.asarray(prediction.probabilities)
    correct = probabilities.argmax(axis=-1) == targets
    scores = brier_score(prediction, targets, per_row=True)
    return {
        "accuracy": float(np.average(correct, weights=weights)),
        "brier_score": float(np.average(scores, weights=weights)),
        "expected_calibration_error": expected_calibration_error(
            prediction, targets, sample_weight=weights
        ),
    }
