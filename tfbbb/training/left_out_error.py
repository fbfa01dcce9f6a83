"""The error of rows left out, beside their likelihood, when a trial is kept.

A few absurd means hardly change a likelihood, and ruin the squared error: so a trial
that is far worse than the mean of the targets is refused while there is a better one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tfbbb.judging.evaluation.judgement import compare_sums
from tfbbb.judging.evaluation.predicted_rows import PredictedRows
from tfbbb.judging.types import Prediction

# A relative error from which on a trial is refused.
WORST_ERROR = 1.1
# In nats per row: what a trial may cost that is better than a constant.
_MOST_COST = 0.1
# In nats per row, and of the root mean squared error.
_CLOSE_LIKELIHOOD, _CLOSE_ERROR = 0.02, 0.05


@dataclass(frozen=True)
class Trial:
    """One temperature that was tried, with figures of the rows that members left out.

    The log-likelihood, in nats per row, is that after calibration by one factor, not
    finite if the members diverged. The relative error is that of `relative_error`. The
    sum `is_off` if predictions do not add up to what the targets add up to.
    """

    temperature: float
    log_likelihood: float
    factor: float
    relative_error: float = 0.0
    is_off: bool = False


def most_likely(trials: Sequence[Trial]) -> Trial:
    """Returns the most likely trial among those that are not refused.

    If all are far worse than the constant, those with about the least error are not.
    One that is worse than the constant gives way to another that is not, unless this
    costs a tenth of a nat per row. One whose sum is off gives way to another whose sum
    is not, unless this costs squared error.
    """
    finite = [each for each in trials if np.isfinite(each.log_likelihood)]
    least = min(each.relative_error for each in finite or trials)
    limit = WORST_ERROR * max(1.0, least)
    kept = [each for each in finite if each.relative_error <= limit]
    best = max(kept or trials, key=lambda each: each.log_likelihood)
    least_likely = best.log_likelihood - _MOST_COST
    better = [
        each
        for each in kept
        if each.relative_error <= 1.0 and each.log_likelihood >= least_likely
    ]
    if best.relative_error > 1.0 and better:
        best = max(better, key=lambda each: each.log_likelihood)
    right = [
        each
        for each in kept
        if not each.is_off and each.relative_error <= best.relative_error
    ]
    if not best.is_off or not right:
        return best
    return max(right, key=lambda each: each.log_likelihood)


def is_off(
    prediction: Prediction, targets: np.ndarray, weights: np.ndarray | None = None
) -> bool:
    """Returns whether the sum of predictions is off: see `compare_sums`."""
    if hasattr(prediction, "probabilities") or getattr(prediction, "censored", False):
        return False
    log_prob, means = np.zeros(len(targets)), np.asarray(prediction.mean)
    return any(
        compare_sums(PredictedRows(log_prob, mean, weights=weights), of_target)["off"]
        for mean, of_target in zip(means.T, np.asarray(targets).T, strict=True)
    )


def competes(
    trial: Trial,
    linear: PredictedRows,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
) -> bool:
    """Returns whether a linear model predicts rows left out about as well."""
    if linear.scores is not None:
        # Of times that are cut off none is fitted, and it mostly does.
        return True
    log_likelihood = float(np.average(linear.log_prob, weights=weights))
    if log_likelihood > trial.log_likelihood - _CLOSE_LIKELIHOOD:
        return True
    if linear.of_classes:
        return False
    error = relative_error(linear, targets, weights)
    return error < (1.0 + _CLOSE_ERROR) ** 2 * trial.relative_error


def relative_error(
    prediction: "Prediction | PredictedRows",
    targets: np.ndarray,
    weights: np.ndarray | None = None,
) -> float:
    """Returns the mean squared error over that of the mean of the targets."""
    if hasattr(prediction, "probabilities") or getattr(prediction, "censored", False):
        return 0.0
    values = np.asarray(targets, np.float64).reshape(len(targets), -1)
    means = np.asarray(prediction.mean, np.float64).reshape(values.shape)
    error = np.average(np.square(values - means), axis=0, weights=weights)
    centre = np.average(values, axis=0, weights=weights)
    spread = np.average(np.square(values - centre), axis=0, weights=weights)
    return float(np.max(error / np.maximum(spread, 1e-300)))
