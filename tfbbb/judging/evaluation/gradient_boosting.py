"""Gradient boosting of trees, beside which a training judges its network."""

import time
from math import inf, isfinite
from typing import Any

import numpy as np
from scipy import optimize, stats
from scipy.special import log_softmax

from tfbbb.judging.evaluation.baseline import positive_scale, score_numbers
from tfbbb.judging.evaluation.predicted_rows import PredictedRows, joined

GRADIENT_BOOSTING = "gradient boosting"
# Of a tree per iteration for numbers and for two classes, and of one per class.
_ITERATIONS, _ITERATIONS_OF_TWO, _ITERATIONS_OF_MORE = 300, 80, 40
_ITERATIONS_TO_TIME = 5
_OPTIONS = {
    "learning_rate": 0.1,
    "max_leaf_nodes": 8,
    "min_samples_leaf": 5,
    "max_bins": 64,
    "early_stopping": False,
    "random_state": 0,
}
# Numbers times trees of one training, which take a few seconds.
_MOST_WORK = 2e8
# A sample of fewer rows would not judge fairly.
_FEWEST_SAMPLED = 1000
_DEGREES_OF_FREEDOM = (2.1, 1000.0)
_TEMPERATURES = (0.2, 20.0)

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
    trees = iterations = _ITERATIONS
    if num_classes:
        trees = iterations = _ITERATIONS_OF_TWO
    if len(known) > 2:
        iterations = _ITERATIONS_OF_MORE
        trees = iterations * len(known)
    most = int(_MOST_WORK / (fits * features.shape[1] * trees))
    if len(targets) > most:
        if most < _FEWEST_SAMPLED:
            raise TooSlowError
        chosen = np.random.default_rng(0).choice(len(targets), most, replace=False)
        features, targets = features[chosen], targets[chosen]
        weights = None if weights is None else weights[chosen]
        known = np.unique(targets) if num_classes else known

    def fit(number: int) -> Any:
        kind = HistGradientBoostingRegressor
        if num_classes:
            kind = HistGradientBoostingClassifier
        made = kind(max_iter=number, **_OPTIONS)
        return made.fit(features, targets.reshape(-1), weights)

    # Threads that wait for a core take longer than one.
    with threadpool_limits(1):
        if isfinite(seconds):
            began = time.monotonic()
            fit(_ITERATIONS_TO_TIME)
            share = _ITERATIONS_TO_TIME / (iterations * fits)
            if time.monotonic() - began > share * seconds:
                raise TooSlowError
        if not num_classes:
            return fit(iterations).predict(measured)[:, np.newaxis]
        probabilities = np.zeros((len(measured), num_classes))
        probabilities[:, known] = 1.0
        if len(known) > 1:
            probabilities[:, known] = fit(iterations).predict_proba(measured)
        probabilities = np.maximum(probabilities, 0.5 / len(targets))
    return np.log(probabilities / probabilities.sum(axis=1, keepdims=True))


def score_gradient_boosting(
    outputs: np.ndarray,
    targets: np.ndarray,
    folds: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    num_classes: int = 0,
    discrete: bool = False,
    relative: np.ndarray | None = None,
    masses: tuple[float, ...] = (),
) -> PredictedRows:
    """Scores outputs with the spread that those of the other folds have.

    A number has Student t noise around its mean, whose scale and degrees of freedom are
    the most likely ones of the rows in other folds. Probabilities of classes have the
    temperature that is the most likely one there. With `relative` exposures [n], the
    outputs are rates.
    """
    size = np.ones(len(targets)) if relative is None else relative
    parts, groups = [], [np.flatnonzero(folds == fold) for fold in np.unique(folds)]
    weights = np.ones(len(targets)) if weights is None else weights
    for group in groups:
        others = np.setdiff1d(np.arange(len(targets)), group)
        if num_classes:
            of_others = (outputs[others], targets[others], weights[others])
            temperature = _fit_temperature(*of_others)
            logits = log_softmax(outputs[group] / temperature, axis=1)
            log_prob = logits[np.arange(len(group)), targets[group]]
            parts.append(PredictedRows(log_prob, np.exp(logits), of_classes=True))
        else:
            root = np.sqrt(size[others, np.newaxis])
            errors = targets[others] / root - outputs[others] * root
            scale, df = _fit_noise(errors, weights[others])
            scale = positive_scale(scale, targets)
            noise = stats.t(df)
            rows = outputs[group], scale, targets[group], noise, discrete
            parts.append(score_numbers(*rows, size[group], masses))
    return joined(parts, groups)


def _fit_noise(errors: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Returns the most likely scale and degrees of freedom of Student t noise."""
    errors = errors.reshape(len(weights))
    unit = float(np.sqrt(np.average(np.square(errors), weights=weights))) or 1.0

    def loss(parameters: np.ndarray) -> float:
        scale, df = np.exp(parameters)
        log_prob = stats.t.logpdf(errors / unit, df, scale=scale)
        return -float(np.average(log_prob, weights=weights))

    bounds = ((-10.0, 2.0), tuple(np.log(_DEGREES_OF_FREEDOM)))
    found = optimize.minimize(loss, (-0.2, 2.0), method="L-BFGS-B", bounds=bounds).x
    return unit * float(np.exp(found[0])), float(np.exp(found[1]))


def _fit_temperature(
    logits: np.ndarray, targets: np.ndarray, weights: np.ndarray
) -> float:
    """Returns the most likely temperature of logits [n, classes]."""

    def loss(log_temperature: float) -> float:
        found = log_softmax(logits / np.exp(log_temperature), axis=1)
        of_targets = found[np.arange(len(targets)), targets]
        return -float(np.average(of_targets, weights=weights))

    bounds = tuple(np.log(_TEMPERATURES))
    found = optimize.minimize_scalar(loss, bounds=bounds, method="bounded")
    return float(np.exp(found.x))
