"""A search for the factor that minimises a loss."""

import math
from collections.abc import Callable

import numpy as np

_LIMIT = 128.0
# Two points per octave: a likelihood does not have two minima this close together.
_NUM_FACTORS = 29
# Relative tolerance of the factor: a thousandth of its standard error for 10^5 rows.
_TOLERANCE = 1e-6


def best_factor(name: str, loss: Callable[[float], float]) -> float:
    """Returns the factor between 1/128 and 128 with the smallest loss.

    Refines the best factor of a grid by Brent's method on the factor's logarithm.

    Example:

    >>> best_factor("scale", lambda factor: (factor - 3.0) ** 2)
    3.000

    Args:
        name: Name of the factor, for errors.
        loss: Returns the loss of a factor.

    Raises:
        ValueError: The loss is smallest at an end of the grid.
    """
    from scipy.optimize import minimize_scalar

    grid = np.linspace(-math.log(_LIMIT), math.log(_LIMIT), _NUM_FACTORS)
    losses = [loss(math.exp(point)) for point in grid]
    best = int(np.argmin(losses))
    if best in (0, _NUM_FACTORS - 1):
        raise ValueError(
            f"No {name} from 1/{_LIMIT:.0f} to {_LIMIT:.0f} fits the rows best: the "
            "rows are all predicted right, or all wrong, or lie far from their "
            "predictions. Pass more rows, and check that the targets belong to the "
            f"rows. Received: a likelihood that still rises at {math.exp(grid[best]):g}"
        )
    found = minimize_scalar(
        lambda point: loss(math.exp(point)),
        bounds=(grid[best - 1], grid[best + 1]),
        method="bounded",
        options={"xatol": _TOLERANCE},
    )
    return math.exp(found.x)
