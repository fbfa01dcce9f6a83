"""A search for the factor that minimises a loss."""

import functools
import math
from collections.abc import Callable

import numpy as np

from tfbbb.prediction.result import Predictive

_LIMIT = 128.0
# Two points per octave: a likelihood does not have two minima this close together.
_NUM_FACTORS = 29
# Relative tolerance of the factor: a thousandth of its standard error for 10^5 rows.
_TOLERANCE = 1e-6
# The standard error of a factor of so many rows is 1 %, and 7 %.
_MOST_ROWS, _ROUGH_ROWS = 5000, 100
# Of a search near a start, whose result must not lie at an end.
_NEAR, _INSIDE, _COARSE = math.sqrt(2.0), 0.75, 1e-4


def best_factor(
    name: str,
    loss: Callable[[float], float],
    start: float | None = None,
    num_rows: int | None = None,
    rough: Callable[[float], float] | None = None,
) -> float:
    """Returns the factor between 1/128 and 128 with the smallest loss.

    Refines the best factor of a grid by Brent's method on the factor's logarithm. The
    search on the grid begins where a rough loss, if there is one, is smallest.

    Example:

    >>> best_factor("scale", lambda factor: (factor - 3.0) ** 2)
    3.000
    """
    if start is not None:
        near = _best_between(loss, start / _NEAR, start * _NEAR)
        if _INSIDE < near / start < 1.0 / _INSIDE:
            return near
    grid = np.linspace(-math.log(_LIMIT), math.log(_LIMIT), _NUM_FACTORS)
    roughly = rough or loss
    best = int(np.argmin([roughly(math.exp(point)) for point in grid]))
    if rough is not None:
        best = _descent(lambda place: loss(math.exp(grid[place])), best)
    if best in (0, _NUM_FACTORS - 1) and num_rows is not None:
        weight = 0.5 / num_rows
        return best_factor(name, lambda x: loss(x) + weight * math.log(x) ** 2)
    if best in (0, _NUM_FACTORS - 1):
        raise ValueError(
            f"No {name} from 1/{_LIMIT:.0f} to {_LIMIT:.0f} fits the rows best: the "
            "targets equal their predictions, or lie far from them. Pass more rows, "
            "and check that the targets belong to the rows. "
            f"Received: a likelihood that still rises at {math.exp(grid[best]):g}"
        )
    return _best_between(
        loss, math.exp(grid[best - 1]), math.exp(grid[best + 1]), _TOLERANCE
    )


def draw_rows(
    prediction: Predictive, targets: np.ndarray, weights: np.ndarray | None
) -> list[tuple[Predictive, np.ndarray, np.ndarray]]:
    """Draws as many rows as give a factor, and of these as many as give it roughly."""
    drawn = []
    if weights is None:
        weights = np.ones(len(targets))
    for most in (_MOST_ROWS, _ROUGH_ROWS):
        if len(targets) > most:
            order = np.random.default_rng(0).permutation(len(targets))
            rows = np.sort(order[:most])
            prediction = prediction.take(rows)
            targets, weights = targets[rows], weights[rows]
        drawn.append((prediction, targets, weights))
    return drawn


def _descent(loss: Callable[[int], float], place: int) -> int:
    """Returns the place on the grid from which on both neighbours are no better."""
    loss = functools.cache(loss)
    while True:
        near = range(max(place - 1, 0), min(place + 2, _NUM_FACTORS))
        best = min(near, key=lambda at: (loss(at), at != place))
        if best == place:
            return place
        place = best


def _best_between(
    loss: Callable[[float], float],
    low: float,
    high: float,
    tolerance: float = _COARSE,
) -> float:
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda point: loss(math.exp(point)),
        bounds=(math.log(low), math.log(high)),
        method="bounded",
        options={"xatol": tolerance},
    )
    return math.exp(found.x)
