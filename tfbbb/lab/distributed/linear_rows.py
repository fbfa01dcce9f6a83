"""Rows of a linear model with normal noise: the local optimum in closed form."""

import numpy as np

from tfbbb.base.types import ArrayLike
from tfbbb.lab.inference.natural_normal import NaturalNormal


class LinearRows:
    """`y_i ~ N(x_i^T w, noise^2)`: the factor of the rows is `N(X^T y, X^T X)`.

    With a full covariance the factor is, in units of `noise^2`, `linear = X^T y` and
    `precision = X^T X`, whatever the cavity. For independent weights, the optimum for
    a cavity of precision c and linear l has the precision `c + diag(X^T X)` and the
    mean that solves

        (diag(c) + X^T X) mean = l + X^T y

    in the same units (Bishop 2006, section 10.3). Only the sums are kept, not the rows.

    Args:
        x: Inputs, [n, d].
        y: Targets, [n].
        noise: Standard deviation of the noise, positive.
        prior: The prior of w.
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, noise: float, prior: NaturalNormal):
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        self.prior = prior
        self._linear = x.T @ y / noise**2
        self._precision = x.T @ x / noise**2

    def optimum(
        self, cavity: NaturalNormal, start: NaturalNormal, seed: int
    ) -> NaturalNormal:
        if cavity.precision.ndim == 2:
            return cavity + NaturalNormal(self._linear, self._precision)
        joint = np.diag(cavity.precision) + self._precision
        mean = np.linalg.solve(joint, cavity.linear + self._linear)
        precision = np.diag(joint)
        return NaturalNormal(precision * mean, precision.copy())
