"""Finds columns of numbers that add up to the target."""

from collections.abc import Mapping

import numpy as np

# More rows than columns, so that no sum fits by chance.
_FEWEST_ROWS = 20
_MOST_COLUMNS = 200
# Of the range of the target: what rounding in a file may change.
_ROUNDING = 1e-6
# Of weights that are 1 or -1.
_WEIGHT_ERROR = 1e-3


def find_sum(
    columns: Mapping[str, np.ndarray], target: np.ndarray
) -> tuple[tuple[int, str], ...]:
    """Returns the columns whose sum is the target, with the sign of each.

    Least squares fit the target by all columns. If the fit is exact in each row, it
    gives up one column after the other for as long as it stays so.

    Example:

    >>> import numpy as np
    >>> registered, casual = np.arange(30.0) ** 2, np.arange(30.0)[::-1]
    >>> find_sum({"registered": registered, "casual": casual}, registered + casual)
    ((1, 'registered'), (1, 'casual'))
    """
    columns, rows = _choose_rows(columns, target)
    if len(rows) < _FEWEST_ROWS or len(columns) < 2:
        return ()
    y = target[rows]
    if y.min() == y.max():
        return ()
    x = np.stack([values[rows] for values in columns.values()], axis=1)
    closest = np.argsort(-_correlations(x, y), kind="stable")
    left = [int(place) for place in closest[: len(rows) - _FEWEST_ROWS + 1]]
    weights = _fit_exactly(x, y, left)
    if weights is None:
        return ()
    sizes = dict(zip(left, np.abs(weights) * x[:, left].std(axis=0), strict=True))
    least = _ROUNDING * max(sizes.values())
    order = sorted(left, key=lambda place: float(sizes[place]))
    none = [place for place in order if sizes[place] <= least]
    for given_up in (none, *([place] for place in order)):
        others = [place for place in left if place not in given_up]
        fewer = _fit_exactly(x, y, others) if 0 < len(others) < len(left) else None
        if fewer is not None:
            left, weights = others, fewer
    if len(left) < 2 or np.abs(np.abs(weights) - 1.0).max() > _WEIGHT_ERROR:
        return ()
    signs = dict(zip(left, np.sign(weights).astype(int).tolist(), strict=True))
    names = list(columns)
    return tuple((signs[place], names[place]) for place in sorted(left))


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


def _correlations(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x, y = x - x.mean(axis=0), y - y.mean()
    sizes = np.linalg.norm(x, axis=0)
    return np.abs(y @ x) / np.where(sizes > 0, sizes, np.inf)


def _fit_exactly(x: np.ndarray, y: np.ndarray, places: list[int]) -> np.ndarray | None:
    """Returns the weights of some columns whose sum is y in each row, or None."""
    x = x[:, places]
    number = min(len(x), 2 * len(places) + _FEWEST_ROWS)
    some = np.linspace(0, len(x) - 1, number).astype(int)
    scales = np.abs(x).max(axis=0)
    weights: np.ndarray = np.linalg.lstsq(x[some] / scales, y[some])[0] / scales
    tolerance = _ROUNDING * (y.max() - y.min())
    return weights if np.abs(x @ weights - y).max() <= tolerance else None
