"""Levels of quantiles and intervals."""

from collections.abc import Sequence

import numpy as np

from tfbbb.checked_numbers import is_finite_number


def checked_levels(levels: float | Sequence[float]) -> np.ndarray:
    """Returns `levels` as a vector.

    Raises:
        ValueError: Where there is none, or one not strictly between 0 and 1.
    """
    values = np.atleast_1d(np.asarray(levels, dtype=np.float64))
    inside = (values > 0) & (values < 1)
    if values.ndim != 1 or not values.size or not inside.all():
        raise ValueError(
            "Levels of quantiles and intervals must lie strictly between 0 and 1. "
            f"Received: {levels!r}"
        )
    return values


def checked_level(level: float) -> float:
    """Returns the probability `level` of an interval.

    Raises:
        ValueError: Where it is no number strictly between 0 and 1.
    """
    if not (is_finite_number(level) and 0.0 < level < 1.0):
        raise ValueError(
            "`level` is the probability of an interval and must lie strictly between "
            f"0 and 1. Received: level={level!r}"
        )
    return float(level)
