"""The range of a binomial count under a calibrated model."""

import numpy as np
import numpy.typing as npt


def sampling_band(
    number: npt.ArrayLike, probability: npt.ArrayLike, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the lower and upper ends of a central binomial interval.

    The interval of Binomial(number, probability) has at least the probability
    `confidence`, both ends included.
    """
    tail = (1.0 - confidence) / 2.0
    return (
        _quantile(tail, number, probability),
        _quantile(1.0 - tail, number, probability),
    )


def _quantile(
    level: float, number: npt.ArrayLike, probability: npt.ArrayLike
) -> np.ndarray:
    """Returns the least count that is reached with the probability `level`."""
    from scipy import special

    n, p = np.broadcast_arrays(np.asarray(number, int), np.asarray(probability, float))
    found = np.ceil(special.bdtrik(level, n.astype(float), p))
    found = np.where(p <= 0.0, 0.0, np.where(p >= 1.0, n, found))
    below = np.maximum(found - 1.0, 0.0)
    return np.where(special.bdtr(below, n, p) >= level, below, found)
