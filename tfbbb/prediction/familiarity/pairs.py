"""Values, and pairs of values, that training rows have."""

import itertools

import numpy as np

# Of rows that are the only one with their value or pair of values.
_MOST_ALONE = 0.01
_MOST_VALUES = 50
_MOST_COLUMNS = 20


def telling_pairs(rows: np.ndarray, is_code: np.ndarray) -> np.ndarray:
    """Returns the pairs of columns in which a new pair of values says something.

    At most 1 % of the rows may be the only one with its pair of values. A column of
    codes is a pair with itself. Codes and numbers with up to 50 values are paired with
    each other, of the first 20 such columns.

    Args:
        rows: Encoded rows, [n, p].
        is_code: Whether each column holds codes, [p].

    Returns:
        The indices of two columns, int64 [pairs, 2].
    """
    most_alone = max(1, int(_MOST_ALONE * len(rows)))
    pairs: list[tuple[int, int]] = []
    codes: dict[int, np.ndarray] = {}
    for place, column in enumerate(rows.T):
        values, numbers, counts = np.unique(
            column, return_inverse=True, return_counts=True
        )
        if is_code[place] and (counts == 1).sum() <= most_alone:
            pairs.append((place, place))
        if 1 < len(values) <= _MOST_VALUES and len(codes) < _MOST_COLUMNS:
            codes[place] = numbers
    for (first, one), (second, other) in itertools.combinations(codes.items(), 2):
        counts = np.bincount(one * _MOST_VALUES + other)
        if (counts == 1).sum() <= most_alone:
            pairs.append((first, second))
    return np.array(pairs, np.int64).reshape(-1, 2)


def is_alone(rows: np.ndarray) -> np.ndarray:
    """Returns whether no other row has the value of a row, [n, p]."""
    alone = np.empty(rows.shape, bool)
    for place, column in enumerate(rows.T):
        _, number, counts = np.unique(column, return_inverse=True, return_counts=True)
        alone[:, place] = counts[number] == 1
    return alone
