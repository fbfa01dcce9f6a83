"""The base class of normal posteriors."""

import math

from tfbbb.base.numbers import positive_number
from tfbbb.bayes.posteriors.posterior import InitialScale, Posterior

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
NORMAL_ENTROPY = HALF_LOG_2PI + 0.5


class NormalPosterior(Posterior):
    """A multivariate normal q(w): the marginal of every weight is normal.

    The entropy has a closed form. So does the KL divergence from every prior whose log
    density has a closed-form mean under normal marginals.

    Args:
        initial_scale: Standard deviation at the start, in units of `1/sqrt(fan_in)`
            (a bias has a fan-in of 1). Positive.
    """

    def __init__(self, initial_scale: InitialScale = 0.1):
        self.initial_scale = positive_number("initial_scale", initial_scale)

    def initial_log_scale(self, fan_in: int) -> float:
        """Returns the logarithm of the standard deviation at the start."""
        return math.log(self.initial_scale) - 0.5 * math.log(fan_in)
