"""The rows with which a trained model was calibrated, for `tfbbb predict --adapt`."""

import numpy as np

from tfbbb.export.shift_reference import ShiftReference
from tfbbb.judging.evaluation.input_encoding import named_columns
from tfbbb.judging.types import Inputs
from tfbbb.prediction.answers import more_probable
from tfbbb.prediction.recalibration.conformal import Conformal
from tfbbb.prediction.recalibration.cross_fitted import CrossFitted
from tfbbb.prediction.recalibration.recalibration import Recalibration
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import cdf_step
from tfbbb.tables import Schema

# Of levels, which exported models take in single precision.
_ROUNDING = 1e-6


def shift_reference(
    schema: Schema,
    recalibration: Recalibration | None,
    prediction: Predictive | CrossFitted,
    inputs: Inputs,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
) -> ShiftReference | None:
    """Returns the rows that calibrated a model; None if it can have none.

    Columns of hashed texts are not compared: most of their values occur once.
    """
    columns = named_columns(inputs, [column.name for column in schema.features])
    compared = {
        column.name: columns[column.name]
        for column in schema.features
        if not column.buckets
    }
    groups = None if recalibration is None else recalibration.groups(inputs)
    groups = None if groups is None else groups.numpy()
    levels = smallest_levels(recalibration, prediction, targets, groups, weights)
    return ShiftReference.fit(compared, levels, weights=weights)


def smallest_levels(
    recalibration: Recalibration | None,
    prediction: Predictive | CrossFitted,
    targets: np.ndarray,
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Returns the smallest level whose interval or set has the target, [n].

    Of a central interval it is `max(2 P(Y < y) - 1, 1 - 2 P(Y <= y))`, of a set of
    classes the probability of all that are more probable, and of a conformal one the
    rank of the score among all n, divided by n + 1; of weighted rows, the weight up to
    the score, divided by that of all and of a new row (`weighted_scores`).
    """
    if isinstance(recalibration, Conformal):
        scores = recalibration.score(prediction, targets)[:, 0]  # type: ignore[arg-type]
        groups = np.zeros(len(scores), int) if groups is None else groups
        weights = np.ones(len(scores)) if weights is None else weights
        levels = np.empty(len(scores))
        for group in np.unique(groups):
            own = groups == group
            known = np.flatnonzero(own) if group else np.arange(len(scores))
            known = known[np.argsort(scores[known])]
            up_to = np.cumsum(weights[known])
            of_new = np.square(weights[known]).sum() / up_to[-1]
            places = np.searchsorted(scores[known], scores[own])
            levels[own] = up_to[places] / (up_to[-1] + of_new)
        return levels
    if hasattr(prediction, "probabilities"):
        before = more_probable(prediction.probabilities)
        return np.take_along_axis(before, targets[:, np.newaxis], axis=1)[:, 0] + (
            _ROUNDING
        )
    below, up_to = (np.asarray(part)[:, 0] for part in cdf_step(prediction, targets))
    return np.maximum(np.maximum(2.0 * below - 1.0, 1.0 - 2.0 * up_to), 0.0) + _ROUNDING
