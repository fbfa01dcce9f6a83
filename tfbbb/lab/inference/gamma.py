"""Gamma distributions of unknown precisions."""

import math
from typing import NamedTuple

from scipy import special

from tfbbb.base.types import ArrayLike


class Gamma(NamedTuple):
    """A gamma distribution of a precision: shape and rate, numbers or tensors."""

    shape: ArrayLike
    rate: ArrayLike

    @property
    def mean(self) -> ArrayLike:
        """E[precision]."""
        return self.shape / self.rate

    @property
    def mean_of_inverse(self) -> ArrayLike:
        """E[1 / precision], for a shape above 1."""
        return self.rate / (self.shape - 1.0)

    @property
    def mean_log(self) -> float:
        """E[log precision]."""
        return float(special.digamma(self.shape)) - math.log(self.rate)

    def kl_divergence(self, prior: "Gamma") -> float:
        """Returns KL(self || prior) in nats."""
        return float(
            (self.shape - prior.shape) * float(special.digamma(self.shape))
            - math.lgamma(self.shape)
            + math.lgamma(prior.shape)
            + prior.shape * math.log(self.rate / prior.rate)
            + self.shape * (prior.rate / self.rate - 1.0)
        )

    def towards(self, other: "Gamma", step: float) -> "Gamma":
        """Returns the distribution a step of the way in natural parameters."""
        return Gamma(
            (1.0 - step) * self.shape + step * other.shape,
            (1.0 - step) * self.rate + step * other.rate,
        )
