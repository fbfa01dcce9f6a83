"""Metrics of a model on held-out rows."""

from typing import Any

import numpy as np

from tfbbb.metrics import brier_score, calibration_error, expected_calibration_error
from tfbbb.model import BayesianModel
from tfbbb.prediction import Predictive
from tfbbb.recalibration.cross_fitted import CrossFitted

_LEVELS = (0.5, 0.9, 0.95)


def held_out_figures(
    model: BayesianModel, inputs: Any, targets: np.ndarray
) -> dict[str, float]:
    """Computes the figures of a model on held-out rows.

    Args:
        model: A trained model of one target or of classes.
        inputs: Inputs of the model for `n` rows.
        targets: Targets `[n, 1]`, or class indices `[n]`.

    Returns:
        As `prediction_figures`.
    """
    return prediction_figures(model.predictive(inputs), targets)


def prediction_figures(
    prediction: Predictive | CrossFitted, targets: np.ndarray
) -> dict[str, float]:
    """Computes `TrainedTable.metrics` of a prediction of held-out rows.

    Args:
        prediction: The prediction of `n` rows, of one target or of classes.
        targets: Targets `[n, 1]`, or class indices `[n]`.

    Returns:
        The `log_likelihood` per row in nats and its negative, `nll`. For a regression
        also `rmse` and `mean_absolute_error` in units of the target, `coverage_50`,
        `coverage_90` and `coverage_95`, the shares of targets in their 50, 90 and 95 %
        intervals, and `calibration_error`. For a classification also `accuracy`,
        `brier_score` and `expected_calibration_error`.
    """
    log_likelihood = float(np.mean(prediction.log_prob(targets)))
    if hasattr(prediction, "probabilities"):
        figures = _classification_figures(prediction, targets)
    else:
        figures = _regression_figures(prediction, targets)
    return {**figures, "log_likelihood": log_likelihood, "nll": -log_likelihood}


def _regression_figures(prediction: Any, targets: np.ndarray) -> dict[str, float]:
    errors = prediction.mean - targets
    # All levels at once: the search for quantiles takes as long for several.
    lower, upper = prediction.interval(_LEVELS)
    between = targets[:, np.newaxis]
    inside = np.mean((lower <= between) & (between <= upper), axis=(0, 2))
    return {
        "rmse": float(np.sqrt(np.mean(errors**2))),
        "mean_absolute_error": float(np.mean(np.abs(errors))),
        **{
            f"coverage_{100 * level:g}": float(share)
            for level, share in zip(_LEVELS, inside, strict=True)
        },
        "calibration_error": calibration_error(prediction, targets),
    }


def _classification_figures(prediction: Any, targets: np.ndarray) -> dict[str, float]:
    probabilities = np.asarray(prediction.probabilities)
    correct = probabilities.argmax(axis=-1) == targets
    return {
        "accuracy": float(np.mean(correct)),
        "brier_score": brier_score(prediction, targets),
        "expected_calibration_error": expected_calibration_error(prediction, targets),
    }
