"""The density and the distribution function of the standard normal."""

import math

from tfbbb.base import array_ops as ops
from tfbbb.base.types import Tensor
from tfbbb.bayes.posteriors.posterior import HALF_LOG_2PI


def standard_normal_log_prob(z: Tensor) -> Tensor:
    """Returns log N(z; 0, 1)."""
    return -0.5 * ops.square(z) - HALF_LOG_2PI


def standard_normal_cdf(z: Tensor) -> Tensor:
    """Returns the standard normal distribution function at z."""
    # erfc keeps the precision of the lower tail, which 1 + erf would lose.
    return 0.5 * ops.erfc(-z * math.sqrt(0.5))
