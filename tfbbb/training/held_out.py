"""Metrics of a model on held-out rows."""

from typing import Any

import numpy as np

from tfbbb.base.row_weights import resampled
from tfbbb.base.types import Structure
from tfbbb.judging.drift_reference import DriftReference, drift_scores
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction import Predictive
from tfbbb.prediction.recalibration.cross_fitted import CrossFitted
from tfbbb.prediction.target_scores import cdf_step, in_intervals
from tfbbb.scores.metrics import (
    brier_score,
    calibration_error,
    expected_calibration_error,
)

LEVELS = (0.5, 0.9, 0.95)


def held_out_figures(
    model: BayesianModel, inputs: Structure, targets: np.ndarray
) -> dict[str, float]:
    """Computes the figures of a model on held-out rows."""
    return prediction_figures(model.predictive(inputs), targets)


def prediction_figures(
    prediction: Predictive | CrossFitted,
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
    prediction: Predictive | CrossFitted,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
) -> DriftReference:
    """Returns the scores with which the service will compare rows of feedback."""
    pit = None
    if not hasattr(prediction, "probabilities"):
        below, up_to = (np.asarray(x) for x in cdf_step(prediction, targets))
        pit = (below + up_to) / 2
    scores = drift_scores(prediction.log_prob(targets), pit)
    return DriftReference(scores if weights is None else scores[resampled(weights)])


def _regression_figures(
    prediction: Any, targets: np.ndarray, weights: np.ndarray | None
) -> dict[str, float]:
    errors = np.mean(np.square(prediction.mean - targets), axis=1)
    distances = np.mean(np.abs(prediction.mean - targets), axis=1)
    inside = np.mean(in_intervals(prediction, targets, LEVELS), axis=2)
    shares = np.average(inside, axis=0, weights=weights)
    return {
        "rmse": float(np.sqrt(np.average(errors, weights=weights))),
        "mean_absolute_error": float(np.average(distances, weights=weights)),
        **{
            f"coverage_{100 * level:g}": float(share)
            for level, share in zip(LEVELS, shares, strict=True)
        },
        "calibration_error": calibration_error(
            prediction, targets, sample_weight=weights
        ),
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
