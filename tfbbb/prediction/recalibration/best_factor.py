"""A search for the factor that minimises a loss."""

import math
from collections.abc import Callable

import numpy as np

from tfbbb.prediction.result import Predictive

_LIMIT = 128.0
# Two points per octave: a likelihood does not have two minima this close together.
_NUM_FACTORS = 29
# Relative tolerance of the factor: a thousandth of its standard error for 10^5 rows.
_TOLERANCE = 1e-6
# The standard error of a factor of so many rows is 1 %.
_MOST_ROWS = 5000
# Of a search near a start, whose result must not lie at an end.
_NEAR, _INSIDE, _COARSE = math.sqrt(2.0), 0.75, 1e-4


def best_factor(
    name: str,
    loss: Callable[[float], float],
    start: float | None = None,
    num_rows: int | None = None,
) -> float:
    """Returns the factor between 1/128 and 128 with the smallest loss.

    Refines the best factor of a grid by Brent's method on the factor's logarithm.

    Example:

    >>> best_factor("scale", lambda factor: (factor - 3.0) ** 2)
    3.000

    Args:
        name: Name of the factor, for errors.
        loss: Returns the loss of a factor.
        start: A factor near the best one, such as that of similar rows; it saves most
            of the search. None if there is none.
        num_rows: Number of rows whose mean is the loss, a negative log-likelihood. If
            it is smallest at an end of the grid, the prior log f ~ N(0, 1) is added,
            with the weight of one row: `loss + (log f)^2 / (2 num_rows)`. None for an
            error instead.

    Raises:
        ValueError: The loss is smallest at an end of the grid.
    """
    if start is not None:
        near = _best_between(loss, start / _NEAR, start * _NEAR)
        if _INSIDE < near / start < 1.0 / _INSIDE:
            return near
    grid = np.linspace(-math.log(_LIMIT), math.log(_LIMIT), _NUM_FACTORS)
    losses = [loss(math.exp(point)) for point in grid]
    best = int(np.argmin(losses))
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


def some_rows(
    prediction: Predictive, targets: np.ndarray
) -> tuple[Predictive, np.ndarray]:
    """Returns the rows, or as many of them, drawn at random, as give a factor."""
    if len(targets) <= _MOST_ROWS:
        return prediction, targets
    rows = np.sort(np.random.default_rng(0).permutation(len(targets))[:_MOST_ROWS])
    return prediction.take(rows), targets[rows]


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
