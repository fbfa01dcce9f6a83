"""Finds columns of numbers that add up to the target."""

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np

_FEWEST_ROWS = 20
# Of triples there are many more than of pairs.
_MOST_COLUMNS, _MOST_COLUMNS_OF_TRIPLES = 200, 40
_ROWS_OF_FIRST_TEST = 200
# Of the range of the target: what rounding in a file may change.
_ROUNDING = 1e-6
_MOST_VERIFIED = 100


def find_sum(
    columns: Mapping[str, np.ndarray], target: np.ndarray
) -> tuple[tuple[int, str], ...]:
    """Returns the two or three columns whose sum or difference is the target.

    Random weights w of some rows turn each column x into one number w'x. Only columns
    for which these numbers add up to w'y, are compared row by row.

    Example:

    >>> import numpy as np
    >>> registered, casual = np.arange(30.0) ** 2, np.arange(30.0)[::-1]
    >>> find_sum({"registered": registered, "casual": casual}, registered + casual)
    ((1, 'registered'), (1, 'casual'))
    """
    columns, rows = _choose_rows(columns, target)
    if len(rows) < _FEWEST_ROWS or len(columns) < 2:
        return ()
    names, y = list(columns), target[rows]
    x = np.stack([columns[name][rows] for name in names])
    tolerance = _ROUNDING * (y.max() - y.min())
    if tolerance == 0.0:
        return ()
    first = np.linspace(0, len(rows) - 1, min(len(rows), _ROWS_OF_FIRST_TEST))
    places = first.astype(int)
    weights = np.random.default_rng(0).normal(size=len(places))
    slack = tolerance * float(np.abs(weights).sum())
    candidates = _candidates(x[:, places] @ weights, y[places] @ weights, slack)
    for _, found in zip(range(_MOST_VERIFIED), candidates, strict=False):
        total = sum(sign * x[place] for sign, place in found)
        if np.abs(total - y).max() <= tolerance:
            return tuple((sign, names[place]) for sign, place in found)
    return ()


def _choose_rows(
    columns: Mapping[str, np.ndarray], target: np.ndarray
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Returns the columns with the fewest gaps, and the rows that are complete."""
    known = {name: ~np.isnan(values) for name, values in columns.items()}
    order = sorted(columns, key=lambda name: -int(known[name].sum()))
    chosen, complete = {}, ~np.isnan(target)
    for name in order[:_MOST_COLUMNS]:
        both = complete & known[name]
        if 2 * both.sum() < complete.sum():
            break
        values = columns[name][both]
        if len(values) and values.min() < values.max():
            chosen[name], complete = columns[name], both
    return {name: chosen[name] for name in columns if name in chosen}, np.flatnonzero(
        complete
    )


def _candidates(
    x: np.ndarray, y: float, slack: float
) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yields signs and places of numbers that add up to another one, two before three.

    A sum of which each sign is negative is the negative of a sum.
    """
    number = len(x)
    for signs in product((1, -1), repeat=2):
        sums = signs[0] * x[:, np.newaxis] + signs[1] * x
        for i, j in np.argwhere(np.abs(sums - y) <= slack).tolist():
            if i < j:
                yield ((signs[0], i), (signs[1], j))
    if number > _MOST_COLUMNS_OF_TRIPLES:
        return
    for signs in product((1, -1), repeat=3):
        pairs = signs[0] * x[:, np.newaxis] + signs[1] * x
        sums = pairs[:, :, np.newaxis] + signs[2] * x
        for i, j, k in np.argwhere(np.abs(sums - y) <= slack).tolist():
            if i < j < k:
                yield ((signs[0], i), (signs[1], j), (signs[2], k))
