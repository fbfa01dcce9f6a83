"""The error of rows left out, beside their likelihood, when a candidate is kept.

A few absurd means hardly change a likelihood, and ruin the squared error: so a
candidate that is far worse than the mean of the targets is refused while there is a
better one.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

import numpy as np

from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.likelihoods.log_link import LogLink
from tfbbb.judging.evaluation.judgement import compare_sums
from tfbbb.judging.evaluation.predicted_rows import PredictedRows
from tfbbb.judging.types import Prediction
from tfbbb.prediction.from_outputs import predictive_from_outputs

# A relative error from which on a candidate is refused.
WORST_ERROR = 1.1
# In nats per row: what a candidate may cost that is better than a constant.
_MOST_COST = 0.1
# In nats per row, and of the root mean squared error.
_CLOSE_LIKELIHOOD, _CLOSE_ERROR = 0.02, 0.05
# Of the greatest log mean, and the log-likelihood or relative error that it may cost.
_STEP, _LEAST_COST = 0.5, 0.002


class Measured(Protocol):
    """A candidate with its figures of rows left out."""

    @property
    def log_likelihood(self) -> float:
        """In nats per row."""

    @property
    def relative_error(self) -> float:
        """Mean squared error over that of the mean of the targets; 0 of classes."""

    @property
    def is_off(self) -> bool:
        """Whether the predictions do not add up to what the targets add up to."""


Candidate = TypeVar("Candidate", bound=Measured)


def most_likely(candidates: Sequence[Candidate]) -> Candidate:
    """Returns the most likely candidate among those that are not refused.

    If all are far worse than the constant, those with about the least error are not.
    One that is worse than the constant gives way to another that is not, unless this
    costs a tenth of a nat per row. One whose sum is off gives way to another whose sum
    is not, unless this costs squared error.
    """
    finite = [each for each in candidates if np.isfinite(each.log_likelihood)]
    least = min(each.relative_error for each in finite or candidates)
    limit = WORST_ERROR * max(1.0, least)
    kept = [each for each in finite if each.relative_error <= limit]
    best = max(kept or candidates, key=lambda each: each.log_likelihood)
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
    if hasattr(prediction, "probabilities"):
        return False
    mean = np.asarray(prediction.mean)
    rows = PredictedRows(np.zeros(len(targets)), mean, weights=weights)
    return bool(compare_sums(rows, targets)["off"])


def competes(
    candidate: Measured,
    linear: PredictedRows,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
) -> bool:
    """Returns whether a linear model predicts rows left out about as well."""
    log_likelihood = float(np.average(linear.log_prob, weights=weights))
    if log_likelihood > candidate.log_likelihood - _CLOSE_LIKELIHOOD:
        return True
    if linear.of_classes:
        return False
    error = relative_error(linear, targets, weights)
    return error < (1.0 + _CLOSE_ERROR) ** 2 * candidate.relative_error


def relative_error(
    prediction: Prediction | PredictedRows,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
) -> float:
    """Returns the mean squared error over that of the mean of the targets."""
    if hasattr(prediction, "probabilities"):
        return 0.0
    values = np.asarray(targets, np.float64).reshape(len(targets), -1)
    means = np.asarray(prediction.mean, np.float64).reshape(values.shape)
    error = np.average(np.square(values - means), axis=0, weights=weights)
    centre = np.average(values, axis=0, weights=weights)
    spread = np.average(np.square(values - centre), axis=0, weights=weights)
    return float(np.max(error / np.maximum(spread, 1e-300)))


def tighter_bound_of_means(
    likelihood: Likelihood,
    outputs: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
) -> np.ndarray | None:
    """Returns a tighter upper bound of the log means, if it helps rows left out.

    The greatest training target may be an outlier, which bounds no mean well. The
    greatest mean of a row left out bounds those of rows that are unlike them. If the
    error of rows left out is worse than that of a constant, tighter bounds are tried,
    and the one with the least error is kept. No bound is kept that costs likelihood.
    """
    if not isinstance(likelihood, LogLink):
        return None

    def measure() -> tuple[float, float, np.ndarray]:
        prediction = predictive_from_outputs(likelihood, outputs)
        found = np.average(prediction.log_prob(targets), weights=weights)
        error = relative_error(prediction, targets, weights)
        return error, float(found), prediction.mean.max(axis=0)

    error, least_likely, greatest = measure()
    if not np.isfinite(least_likely):
        return None
    best, given = None, likelihood.target_high.numpy()
    bounds = [np.minimum(given, np.log(greatest))]
    if error > 1.0:
        bounds += _tighter_bounds(likelihood, np.asarray(targets))
    for high in bounds:
        if (high >= given).all():
            continue
        with bounded_by(likelihood, high):
            of_this, log_likelihood, _ = measure()
        costs = of_this - error, least_likely - log_likelihood
        if max(costs) <= _LEAST_COST and (best is None or costs[0] < 0.0):
            best, error = high, of_this
    return best


@contextmanager
def bounded_by(likelihood: Likelihood, high: np.ndarray | None) -> Iterator[None]:
    """Gives a likelihood another upper bound of its log means, within a block."""
    if high is None:
        yield
        return
    given = likelihood.target_high.numpy()
    likelihood.target_high.assign(high)
    try:
        yield
    finally:
        likelihood.target_high.assign(given)


def _tighter_bounds(likelihood: LogLink, targets: np.ndarray) -> Iterator[np.ndarray]:
    """Yields bounds from that of the likelihood down to the mean of the targets."""
    least = np.log(targets.reshape(len(targets), -1).mean(axis=0))
    high = likelihood.target_high.numpy()
    while np.any(high > least):
        high = np.maximum(high - _STEP, least)
        yield high
