"""The range of a binomial count under a calibrated model."""

import numpy as np
import numpy.typing as npt


def sampling_band(
    number: npt.ArrayLike, probability: npt.ArrayLike, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the lower and upper ends of a central binomial interval.

    The interval of Binomial(number, probability) has at least the probability
    `confidence`, both ends included.

    Example:

    >>> lower, upper = sampling_band(100, [0.5, 0.9], 0.95)
    >>> lower, upper
    (array([40., 84.]), array([60., 95.]))

    Args:
        number: Numbers of trials.
        probability: Probabilities of success in each, broadcast against them.
        confidence: Probability of the interval.
    """
    from scipy.stats import binom

    tail = (1.0 - confidence) / 2.0
    return (
        binom.ppf(tail, number, probability),
        binom.ppf(1.0 - tail, number, probability),
    )
