"""The normal q of expectation propagation: a prior times one normal factor per site."""

import math
from typing import NamedTuple

import numpy as np

from tfbbb.lab.inference.natural_normal import NaturalNormal
from tfbbb.lab.inference.sites import Moments, Sites

_LOG_2PI = math.log(2.0 * math.pi)
_SMALL = 1e-8


class Cavity(NamedTuple):
    """Distributions of q without the factor of each of k sites.

    Attributes:
        sites: Indices of the sites whose cavity is a normal, [k].
        mean: Means of u, [k, r].
        cov: Covariances of u, [k, r, r].
        own: What the approximation keeps beside: means and variances of w, [k, d].
    """

    sites: np.ndarray
    mean: np.ndarray
    cov: np.ndarray
    own: tuple[np.ndarray, ...] = ()


class FullApproximation:
    """q(w) = p(w) prod_i s_i exp(linear_i^T u - u^T precision_i u / 2).

    Args:
        mean: E[w] under the prior, [d].
        covariance: Cov[w] under the prior, [d, d].
        sites: The n sites.

    Attributes:
        linear: Natural parameters of the factors, [n, r].
        precision: Natural parameters of the factors, [n, r, r].
        mean: E[w], [d].
        covariance: Cov[w], [d, d].
    """

    def __init__(self, mean: np.ndarray, covariance: np.ndarray, sites: Sites):
        self._prior = NaturalNormal.from_moments(mean, covariance)
        self._prior_normalizer = _normalizer(mean, covariance)
        self._projections = sites.projections
        count, rank, _ = sites.projections.shape
        self.linear = np.zeros((count, rank))
        self.precision = np.zeros((count, rank, rank))
        self.refresh()

    def refresh(self) -> bool:
        """Computes q from its factors; if it is improper, keeps q and returns False."""
        rows = self._projections
        factors = NaturalNormal(
            np.einsum("nri,nr->i", rows, self.linear),
            np.einsum("nri,nrj->ij", rows, self.precision @ rows, optimize=True),
        )
        q = self._prior + factors
        if not q.proper:
            return False
        self.mean, self.covariance = q.moments()
        return True

    def _marginals(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = self._projections[index]
        cov = rows @ self.covariance @ np.swapaxes(rows, 1, 2)
        return rows @ self.mean, cov + _least(rows)

    def cavity(self, index: np.ndarray) -> Cavity:
        """Returns the cavities of those sites that have one."""
        mean, cov = self._marginals(index)
        inverse = np.linalg.inv(cov)
        precision = inverse - self.precision[index]
        proper = np.linalg.eigvalsh(precision)[:, 0] > 1e-10 * np.abs(
            np.linalg.eigvalsh(inverse)[:, -1]
        )
        index, mean, inverse = index[proper], mean[proper], inverse[proper]
        cavity_cov = np.linalg.inv(precision[proper])
        linear = _times(inverse, mean) - self.linear[index]
        return Cavity(index, _times(cavity_cov, linear), cavity_cov)

    def matched(self, cavity: Cavity, tilted: Moments) -> tuple[np.ndarray, np.ndarray]:
        """Returns the factors with which q has the moments of the tilted."""
        _, mean, cov = tilted
        inverse, cavity_inverse = np.linalg.inv(cov), np.linalg.inv(cavity.cov)
        linear = _times(inverse, mean) - _times(cavity_inverse, cavity.mean)
        return linear, inverse - cavity_inverse

    def log_evidence(self, cavity: Cavity, log_z: np.ndarray) -> float:
        """Returns log of the integral of prior times approximate sites."""
        mean, cov = self._marginals(cavity.sites)
        scales = log_z + _normalizer(cavity.mean, cavity.cov) - _normalizer(mean, cov)
        own = _normalizer(self.mean, self.covariance)
        return float(own - self._prior_normalizer + scales.sum())


class FactorisedApproximation:
    """Independent normals: the factor of a site is one normal for each weight, [n, d].

    Its methods are those of `FullApproximation`; `covariance` has the variances, [d].
    """

    def __init__(self, mean: np.ndarray, variance: np.ndarray, sites: Sites):
        self._prior = NaturalNormal.from_moments(mean, variance)
        self._prior_normalizer = _factorised_normalizer(mean, variance).sum()
        self._projections = sites.projections
        count, _, size = sites.projections.shape
        self.linear = np.zeros((count, size))
        self.precision = np.zeros((count, size))
        self.refresh()

    def refresh(self) -> bool:
        q = self._prior + NaturalNormal(self.linear.sum(0), self.precision.sum(0))
        if not q.proper:
            return False
        self.mean, self.covariance = q.moments()
        return True

    def cavity(self, index: np.ndarray) -> Cavity:
        precision = 1.0 / self.covariance - self.precision[index]
        proper = (precision > 1e-10 / self.covariance).all(1)
        index, precision = index[proper], precision[proper]
        mean = (self.mean / self.covariance - self.linear[index]) / precision
        rows = self._projections[index]
        cov = (rows / precision[:, None, :]) @ np.swapaxes(rows, 1, 2) + _least(rows)
        return Cavity(index, _times(rows, mean), cov, (mean, 1.0 / precision))

    def matched(self, cavity: Cavity, tilted: Moments) -> tuple[np.ndarray, np.ndarray]:
        _, of_u, cov = tilted
        mean, variance = cavity.own
        rows = self._projections[cavity.sites]
        # The regression of w on u in the cavity, [k, d, r].
        gain = (variance[:, :, None] * np.swapaxes(rows, 1, 2)) @ np.linalg.inv(
            cavity.cov
        )
        new_mean = mean + _times(gain, of_u - cavity.mean)
        lost = np.einsum("kdr,krs,kds->kd", gain, cavity.cov - cov, gain, optimize=True)
        new_variance = variance - lost
        linear = new_mean / new_variance - mean / variance
        return linear, 1.0 / new_variance - 1.0 / variance

    def log_evidence(self, cavity: Cavity, log_z: np.ndarray) -> float:
        own = _factorised_normalizer(self.mean, self.covariance)
        scales = log_z + (_factorised_normalizer(*cavity.own) - own).sum(-1)
        return float(own.sum() - self._prior_normalizer + scales.sum())


SiteApproximation = FullApproximation | FactorisedApproximation


def _least(rows: np.ndarray) -> np.ndarray:
    """Returns a small covariance for rows of zeros, 0 for others.

    With a row of zeros u is 0 whatever w is; any small variance will do for it.
    """
    zero = np.all(rows == 0.0, axis=(1, 2))
    return _SMALL * zero[:, None, None] * np.eye(rows.shape[1])


def _times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return (matrices @ vectors[..., None])[..., 0]


def _normalizer(mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
    """Returns log of the integral of exp(linear^T u - u^T precision u / 2)."""
    squares = (mean * np.linalg.solve(cov, mean[..., None])[..., 0]).sum(-1)
    return 0.5 * (squares + np.linalg.slogdet(cov)[1] + mean.shape[-1] * _LOG_2PI)


def _factorised_normalizer(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Returns the same for each weight alone, [..., d]."""
    return 0.5 * (mean**2 / variance + np.log(variance) + _LOG_2PI)
