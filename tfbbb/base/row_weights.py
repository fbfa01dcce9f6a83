"""Weights of rows: how many rows each of them counts as, up to one factor."""

import math

import numpy as np

from tfbbb.base.types import ArrayLike

_ROUNDING = 1e-9


def one_weight(sample_weight: ArrayLike, num_rows: int) -> np.ndarray | None:
    """Returns one weight per row, float64 [rows], or None."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(num_rows, float(weights))
    if weights.shape != (num_rows,):
        raise ValueError(
            "`sample_weight` must hold one number per row. "
            f"Received: sample_weight of shape {weights.shape} for {num_rows} rows"
        )
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            "Every sample weight must be a finite number of at least 0. "
            f"Received: {weights[row]} in row {row}"
        )
    if not weights.any():
        raise ValueError(
            "The weights of all rows are zero, so there is nothing to learn; "
            "`sample_weight` must contain at least one non-zero number."
        )
    return weights


def effective_rows(weights: np.ndarray) -> int:
    """Returns `floor((sum of w)^2 / sum of w^2)`: as many rows of equal weight."""
    total = np.sum(weights)
    return int(total**2 / np.sum(np.square(weights)) + _ROUNDING) if total else 0


def mean_and_error(
    values: np.ndarray, weights: np.ndarray | None = None
) -> tuple[float, float]:
    """Returns the mean of the rows' values by their weights, and its standard error.

        sqrt(m / (m - 1) sum of w^2 (x - mean)^2) / sum of w

    with m = `effective_rows`: of equal weights that of a mean of independent rows.

    Example:

    >>> mean_and_error(np.array([1.0, 3.0]))
    (2.0, 1.0)
    """
    weights = np.ones(len(values)) if weights is None else weights
    mean = float(np.average(values, weights=weights))
    number = effective_rows(weights)
    if number < 2:
        return mean, math.inf
    spread = np.sqrt(np.sum(np.square(weights * (values - mean)))) / weights.sum()
    return mean, float(spread * math.sqrt(number / (number - 1)))


def weighted_scores(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Returns scores whose conformal quantiles are those of weighted scores.

    The new row has the mean weight of new rows, `v = sum of w^2 / sum of w`, at an
    infinite score (Tibshirani et al. 2019). Of m = `effective_rows` scores the j-th is
    the smallest whose rows and those below have a weight of `j / (m + 1)` of the whole,
    the new row's included.
    """
    number = effective_rows(weights)
    if not number:
        return scores[:0]
    whole = weights.sum() + np.square(weights).sum() / weights.sum()
    wanted = (np.arange(1, number + 1) / (number + 1) - _ROUNDING) * whole
    found = []
    for column in scores.T:
        order = np.argsort(column)
        places = np.searchsorted(np.cumsum(weights[order]), wanted)
        found.append(column[order][np.minimum(places, len(order) - 1)])
    return np.stack(found, axis=1)


def resampled(weights: np.ndarray, seed: int = 0) -> np.ndarray:
    """Returns rows of equal weight in place of weighted ones, [m].

    Systematic resampling: each of the m = `effective_rows` places in a random order of
    the weights takes the row there, so a row of twice the weight occurs twice as often.

    Example:

    >>> len(resampled(np.array([1.0, 1.0, 2.0, 4.0])))
    2
    """
    order = np.random.default_rng(seed).permutation(len(weights))
    number = effective_rows(weights)
    ends = np.cumsum(weights[order]) / weights.sum()
    return order[np.searchsorted(ends, (np.arange(number) + 0.5) / number)]
