"""Gradient boosting of trees, beside which a training judges its network."""

from math import inf
from typing import Any

import numpy as np

from tfbbb.judging.evaluation.baseline import positive_scale, score_numbers
from tfbbb.judging.evaluation.predicted_rows import PredictedRows

GRADIENT_BOOSTING = "gradient boosting"
# Of a tree per iteration for numbers and for two classes, and of one per class.
_ITERATIONS, _ITERATIONS_OF_TWO, _ITERATIONS_OF_MORE = 300, 80, 40
_OPTIONS = {
    "learning_rate": 0.1,
    "max_leaf_nodes": 8,
    "min_samples_leaf": 5,
    "max_bins": 64,
    "early_stopping": False,
    "random_state": 0,
}
# Numbers times trees of one training, which take a few seconds, and the least time of
# a tree.
_MOST_WORK, _WORK_PER_SECOND, _SECONDS_PER_TREE = 2e8, 4e7, 1e-3
# A sample of fewer rows would not judge fairly.
_FEWEST_SAMPLED = 1000

TREES_ARE_BETTER = (
    "Trees suit this table better: give the model more rows, or more effort "
    "(`effort`, --effort best, or no --quick), or use scikit-learn's "
    "`HistGradientBoosting`, which judged it."
)
NOT_JUDGED_BY_TREES = "Gradient boosting would take too long to judge the model."


class TooSlowError(Exception):
    """Gradient boosting would take too long."""


def fit_gradient_boosting(
    features: np.ndarray,
    targets: np.ndarray,
    measured: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    num_classes: int = 0,
    fits: int = 1,
    seconds: float = inf,
) -> np.ndarray:
    """Returns the outputs of gradient boosting for rows that it was not fitted to.

    The trees are those of scikit-learn's `HistGradientBoosting`, with at most 8 leaves
    of at least 5 rows, at a rate of 0.1: 300 for numbers, 80 for two classes and 40 per
    class for more. One thread fits them, to a sample of many rows.
    """
    from sklearn.ensemble import (
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
    )
    from threadpoolctl import threadpool_limits

    known = np.unique(targets) if num_classes else np.array([])
    trees = iterations = _ITERATIONS_OF_TWO if num_classes else _ITERATIONS
    if len(known) > 2:
        iterations = _ITERATIONS_OF_MORE
        trees = iterations * len(known)
    work = min(_MOST_WORK, _WORK_PER_SECOND * seconds)
    most = int(work / (fits * features.shape[1] * trees))
    is_short = seconds < fits * trees * _SECONDS_PER_TREE
    if is_short or most < min(len(targets), _FEWEST_SAMPLED):
        raise TooSlowError
    if len(targets) > most:
        chosen = np.random.default_rng(0).choice(len(targets), most, replace=False)
        features, targets = features[chosen], targets[chosen]
        weights = None if weights is None else weights[chosen]
        known = np.unique(targets) if num_classes else known
    kind: Any = HistGradientBoostingRegressor
    if num_classes:
        kind = HistGradientBoostingClassifier
    model = kind(max_iter=iterations, **_OPTIONS)
    # Threads that wait for a core take longer than one.
    with threadpool_limits(1):
        if not num_classes:
            model.fit(features, targets.reshape(-1), weights)
            return np.asarray(model.predict(measured)[:, np.newaxis])
        probabilities = np.zeros((len(measured), num_classes))
        probabilities[:, known] = 1.0
        if len(known) > 1:
            model.fit(features, targets, weights)
            probabilities[:, known] = model.predict_proba(measured)
    probabilities = np.maximum(probabilities, 0.5 / len(targets))
    return np.log(probabilities / probabilities.sum(axis=1, keepdims=True))


def score_gradient_boosting(
    outputs: np.ndarray,
    targets: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    num_classes: int = 0,
    discrete: bool = False,
    relative: np.ndarray | None = None,
    masses: tuple[float, ...] = (),
) -> PredictedRows:
    """Scores outputs: log probabilities of classes, or means with normal noise.

    The noise has the spread of the errors of these rows, which no tree was fitted to.
    With `relative` exposures [n], the outputs are rates.
    """
    if num_classes:
        log_prob = outputs[np.arange(len(targets)), targets]
        return PredictedRows(log_prob, np.exp(outputs), of_classes=True)
    root = 1.0 if relative is None else np.sqrt(relative[:, np.newaxis])
    errors = np.square(targets / root - outputs * root)[:, 0]
    scale = float(np.sqrt(np.average(errors, weights=weights)))
    scale = positive_scale(scale, targets)
    return score_numbers(outputs, scale, targets, discrete, relative, masses)
