"""Pairs of columns whose values occur together."""

import itertools

import numpy as np

# Of rows that are the only one with their pair of values.
_MOST_ALONE = 0.01
_MOST_VALUES = 50
_MOST_COLUMNS = 20


def few_valued_pairs(rows: np.ndarray) -> np.ndarray:
    """Returns the pairs of columns in which a new pair of values says something.

    Texts and numbers with up to 50 values are paired, of the first 20 such columns. At
    most 1 % of the rows may be the only one with its pair of values.

    Args:
        rows: Encoded rows, [n, p].

    Returns:
        The indices of two columns, int64 [pairs, 2].
    """
    codes: dict[int, np.ndarray] = {}
    for place, column in enumerate(rows.T):
        values, numbers = np.unique(column, return_inverse=True)
        if 1 < len(values) <= _MOST_VALUES and len(codes) < _MOST_COLUMNS:
            codes[place] = numbers
    pairs = []
    for (first, one), (second, other) in itertools.combinations(codes.items(), 2):
        counts = np.bincount(one * _MOST_VALUES + other)
        if (counts == 1).sum() <= _MOST_ALONE * len(rows):
            pairs.append((first, second))
    return np.array(pairs, np.int64).reshape(-1, 2)


def is_alone(rows: np.ndarray) -> np.ndarray:
    """Returns whether no other row has the value of a row, [n, p]."""
    alone = np.empty(rows.shape, bool)
    for place, column in enumerate(rows.T):
        _, number, counts = np.unique(column, return_inverse=True, return_counts=True)
        alone[:, place] = counts[number] == 1
    return alone
