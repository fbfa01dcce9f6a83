"""Weights with which held-out rows stand for rows of another distribution."""

import numpy as np

from tfbbb.base.row_weights import effective_rows

# Intervals of 95 % need 19 rows.
LEAST_EFFECTIVE_ROWS = 20
_LEAST_NEW_ROWS = 20
# More new rows tell no more of their distribution.
_MOST_NEW_ROWS = 10_000
_FOLDS = 5
_STRENGTHS = (0.001, 0.01, 0.1, 1.0)
# A column of codes has a weight for each of its most frequent ones.
_MOST_CODES, _FEWEST_OF_CODE = 50, 5
# Of a square in standard deviations, which a few far rows must not dominate.
_LARGEST_SQUARE = 9.0
_LEAST_REACHED = 2.0 / 3.0


def shift_weights(
    held_out: np.ndarray, new: np.ndarray, is_code: np.ndarray
) -> np.ndarray:
    """Returns the estimated density ratio of each held-out row, [n].

        w(x) = p(x | new) / p(x | held out) = P(new | x) / P(held out | x) n / m

    A logistic regression of numbers, their squares and categories tells the m new rows
    from the n held-out rows. Five-fold cross-validation chooses its regularisation, and
    each row has the ratio of the fold that left it out, at most sqrt(n) times the mean:
    a single row must not decide (Ionides 2008). If rows left out are not told
    apart by more than one standard error of the log loss, all ratios are 1.

    Example:

    >>> generator = np.random.default_rng(0)
    >>> old, new = generator.normal(size=(2, 1000, 1)) + [[[0.0]], [[1.0]]]
    >>> weights = shift_weights(old, new, np.array([False]))
    >>> bool(np.corrcoef(np.log(weights), old[:, 0])[0, 1] > 0.9)
    True

    Args:
        held_out: The held-out rows by `RowEncoding`, [n, p].
        new: The new rows likewise, [m, p].
        is_code: Whether each column holds codes, not numbers, [p].
    """
    if len(new) < _LEAST_NEW_ROWS:
        raise ValueError(
            f"The distribution of new rows takes at least {_LEAST_NEW_ROWS} of them; "
            "predict fewer without adapting. "
            f"Received: {len(new)} new rows"
        )
    if len(new) > _MOST_NEW_ROWS:
        new = np.random.default_rng(0).permutation(new)[:_MOST_NEW_ROWS]
    is_new = np.repeat([False, True], [len(held_out), len(new)])
    columns = _standardized(np.vstack([held_out, new]), is_code)
    order = np.random.default_rng(0).permutation(len(is_new))
    folds = np.empty(len(is_new), int)
    folds[order] = np.arange(len(is_new)) % _FOLDS
    odds = float(np.log(len(new) / len(held_out)))
    losses, logits = min(
        (_left_out(columns, is_new, folds, strength) for strength in _STRENGTHS),
        key=lambda found: found[0].mean(),
    )
    gain = _losses(np.full(len(is_new), odds), is_new) - losses
    if gain.mean() <= gain.std() / np.sqrt(len(gain)):
        return np.ones(len(held_out))
    weights = np.exp(logits[: len(held_out)] - odds)
    weights = np.minimum(weights, np.sqrt(len(weights)) * weights.mean())
    _check_reach(weights)
    return weights


def _check_reach(weights: np.ndarray) -> None:
    """Raises ValueError for weights that say too little about the new rows.

    The mean of density ratios is the probability of new rows where held-out rows are.
    """
    number, reached = effective_rows(weights), float(weights.mean())
    if number < LEAST_EFFECTIVE_ROWS or reached < _LEAST_REACHED:
        raise ValueError(
            "The new rows are too unlike the held-out rows, which must count for at "
            f"least {LEAST_EFFECTIVE_ROWS} rows and be where two thirds of the new "
            "rows are: learn the targets of some new rows, and recalibrate or train "
            f"with these. Received: new rows, {min(reached, 1.0):.0%} are where "
            f"held-out rows are; {len(weights)} held-out rows, which count for {number}"
        )


def _left_out(
    columns: np.ndarray, is_new: np.ndarray, folds: np.ndarray, strength: float
) -> tuple[np.ndarray, np.ndarray]:
    """Returns losses and log odds of rows by regressions that left them out, [n]."""
    from sklearn.linear_model import LogisticRegression

    logits = np.empty(len(is_new))
    for fold in range(_FOLDS):
        others = folds != fold
        regression = LogisticRegression(C=strength, max_iter=1000)
        regression.fit(columns[others], is_new[others])
        logits[~others] = regression.decision_function(columns[~others])
    return _losses(logits, is_new), logits


def _losses(logits: np.ndarray, is_new: np.ndarray) -> np.ndarray:
    return np.logaddexp(0.0, np.where(is_new, -logits, logits))


def _standardized(rows: np.ndarray, is_code: np.ndarray) -> np.ndarray:
    """Returns numbers, their squares and codes as columns for a linear model."""
    parts = [np.zeros((len(rows), 1))]
    for column in np.asarray(rows, np.float64).T[~is_code]:
        scale = column.std()
        if scale > 0.0:
            unit = (column - column.mean()) / scale
            square = np.minimum(np.square(unit), _LARGEST_SQUARE)
            parts.append(np.stack([unit, square - square.mean()], axis=1))
    for column in rows.T[is_code]:
        codes, counts = np.unique(column, return_counts=True)
        often = np.argsort(-counts, kind="stable")[:_MOST_CODES]
        kept = codes[often[counts[often] >= _FEWEST_OF_CODE]]
        if len(codes) > 1:
            parts.append((column[:, np.newaxis] == kept).astype(np.float64))
    return np.concatenate(parts, axis=1)
