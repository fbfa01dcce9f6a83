"""Sites of expectation propagation: factors of a posterior, many of a kind at once.

A *site* t_i(w) depends on r linear combinations `u = A_i w` of the weights. Expectation
propagation asks a collection of n sites for the moments of `t_i(u) N(u; m_i, S_i)`, the
*tilted* distributions, and for their normalizers Z_i.
"""

import math
from typing import Protocol

import numpy as np
from scipy import special

from tfbbb.base.types import ArrayLike

_LOG_2PI = math.log(2.0 * math.pi)
# The trapezoidal rule converges geometrically for analytic functions. A step of 0.8
# meets the poles of the logistic function, at a distance of pi, with an error of
# exp(-2 pi^2 / 0.8) = 2e-11, and a quarter of a standard deviation is finer still.
_STEP = 0.8
_REACH = 12.0
_MOST_NODES = 4096
_BLOCK = 512

Moments = tuple[np.ndarray, np.ndarray, np.ndarray]


class Sites(Protocol):
    """A collection of n sites.

    Attributes:
        projections: A_i, [n, r, d].
    """

    projections: np.ndarray

    def tilted(self, index: np.ndarray, mean: np.ndarray, cov: np.ndarray) -> Moments:
        """Returns log normalizers and moments of tilted distributions.

        Args:
            index: Indices of the k sites that are asked for, [k].
            mean: Means of the cavity distributions of u, [k, r].
            cov: Covariances of the cavity distributions of u, [k, r, r].

        Returns:
            log Z [k], means [k, r], and covariances [k, r, r].
        """


class LogisticSites:
    """Logistic regression: `t_i(w) = sigma(s_i x_i^T w)`, with s_i = +1 or -1.

    The trapezoidal rule around the mode of each tilted distribution.

    Args:
        x: Inputs, [n, d].
        y: Classes 0 and 1, [n].
    """

    def __init__(self, x: ArrayLike, y: ArrayLike):
        self.projections = _rows(x)
        self._signs = _signs(y)

    def tilted(self, index: np.ndarray, mean: np.ndarray, cov: np.ndarray) -> Moments:
        # Blocks of sites, so that the nodes of all take little memory.
        starts = range(0, max(len(index), 1), _BLOCK)
        parts = [
            self._tilted(*(values[i : i + _BLOCK] for values in (index, mean, cov)))
            for i in starts
        ]
        log_z, means, covs = (
            np.concatenate(values) for values in zip(*parts, strict=True)
        )
        return log_z, means, covs

    def _tilted(self, index: np.ndarray, mean: np.ndarray, cov: np.ndarray) -> Moments:
        sign, scale = self._signs[index], np.sqrt(cov[:, 0, 0])
        # In u times its sign all sites are alike.
        centre = _logistic_mode(sign * mean[:, 0], cov[:, 0, 0])
        step = min(0.25, _STEP / scale.max(initial=1e-300))
        half = min(math.ceil(_REACH / step), _MOST_NODES // 2)
        nodes = np.arange(-half, half + 1) * (_REACH / half)
        u = centre[:, None] + scale[:, None] * nodes
        standardized = (u - (sign * mean[:, 0])[:, None]) / scale[:, None]
        log_terms = -np.logaddexp(0.0, -u) - 0.5 * (standardized**2 + _LOG_2PI)
        log_sums = special.logsumexp(log_terms, axis=1)
        weights = np.exp(log_terms - log_sums[:, None])
        new_mean = (weights * u).sum(1)
        new_variance = (weights * (u - new_mean[:, None]) ** 2).sum(1)
        log_z = log_sums + math.log(_REACH / half)
        return log_z, (sign * new_mean)[:, None], new_variance[:, None, None]


class NormalSites:
    """Linear regression: `t_i(w) = N(y_i; x_i^T w, s^2)`, which q holds exactly.

    Args:
        x: Inputs, [n, d].
        y: Targets, [n].
        scale: Standard deviation s of the noise, a number or [n].
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, scale: ArrayLike):
        self.projections = _rows(x)
        self._targets = np.asarray(y, np.float64).reshape(-1)
        self._variances = np.broadcast_to(
            np.asarray(scale, np.float64) ** 2, self._targets.shape
        )

    def tilted(self, index: np.ndarray, mean: np.ndarray, cov: np.ndarray) -> Moments:
        deviation = self._targets[index] - mean[:, 0]
        variance, noise = cov[:, 0, 0], self._variances[index]
        total = variance + noise
        log_z = -0.5 * (deviation**2 / total + np.log(total) + _LOG_2PI)
        new_mean = mean[:, 0] + variance / total * deviation
        return log_z, new_mean[:, None], (variance * noise / total)[:, None, None]


def _rows(x: ArrayLike) -> np.ndarray:
    return np.asarray(x, np.float64)[:, None, :]


def _signs(y: ArrayLike) -> np.ndarray:
    classes = np.asarray(y).reshape(-1)
    if not np.isin(classes, (0, 1)).all():
        raise ValueError(
            f"The classes must be 0 and 1. Received: {np.unique(classes)[:5].tolist()}"
        )
    return 2.0 * classes.astype(np.float64) - 1.0


def _logistic_mode(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Returns the modes of `sigma(u) N(u; mean, variance)`.

    The derivative `sigma(-u) - (u - mean) / variance` falls in u, so that the mode lies
    between the mean and `mean + variance`; bisection is safe however wide that is.
    """
    low, high = mean, mean + variance
    for _ in range(40):
        middle = 0.5 * (low + high)
        rises = special.expit(-middle) > (middle - mean) / variance
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return 0.5 * (low + high)
