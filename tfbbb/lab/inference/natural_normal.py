"""Normal distributions and normal factors by their natural parameters."""

from dataclasses import dataclass
from typing import Self

import numpy as np


@dataclass(frozen=True)
class NaturalNormal:
    """`exp(linear^T w - w^T precision w / 2)`, up to a constant.

    Products of normals are sums of natural parameters. A factor need not be a
    distribution: its precision may be negative.
    """

    linear: np.ndarray
    precision: np.ndarray

    @classmethod
    def from_moments(cls, mean: np.ndarray, covariance: np.ndarray) -> Self:
        """Returns the normal with this mean [d] and these variances or covariance."""
        if covariance.ndim == 1:
            return cls(mean / covariance, 1.0 / covariance)
        return cls(np.linalg.solve(covariance, mean), np.linalg.inv(covariance))

    @property
    def proper(self) -> bool:
        """Whether this is a distribution: whether the precision is positive."""
        if self.precision.ndim == 1:
            return bool((self.precision > 0.0).all())
        try:
            np.linalg.cholesky(self.precision)
        except np.linalg.LinAlgError:
            return False
        return True

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the mean [d], and the variances [d] or the covariance [d, d]."""
        if self.precision.ndim == 1:
            return self.linear / self.precision, 1.0 / self.precision
        mean = np.linalg.solve(self.precision, self.linear)
        return mean, np.linalg.inv(self.precision)

    def __add__(self, other: "NaturalNormal") -> "NaturalNormal":
        return NaturalNormal(
            self.linear + other.linear, self.precision + other.precision
        )
