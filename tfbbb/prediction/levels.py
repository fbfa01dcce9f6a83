"""Levels of quantiles and intervals."""

from collections.abc import Sequence

import numpy as np


def checked_levels(levels: float | Sequence[float]) -> np.ndarray:
    """Returns `levels` as a vector.

    Raises:
        ValueError: Where one is not strictly between 0 and 1.
    """
    values = np.atleast_1d(np.asarray(levels, dtype=np.float64))
    if values.ndim != 1 or not np.all((values > 0) & (values < 1)):
        raise ValueError(
            "Levels of quantiles and intervals must lie strictly between 0 and 1. "
            f"Received: {levels!r}"
        )
    return values
