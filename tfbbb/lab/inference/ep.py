"""Expectation propagation with a normal q."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tfbbb.base.numbers import fraction, positive_integer, positive_number
from tfbbb.base.types import ArrayLike
from tfbbb.bayes.likelihoods import Bernoulli, Normal
from tfbbb.lab.inference.linear_model import LinearMethod, LinearModel
from tfbbb.lab.inference.natural_normal import NaturalNormal
from tfbbb.lab.inference.sites import LogisticSites, Moments, NormalSites, Sites
from tfbbb.lab.inference.sweeps import (
    SMALLEST_STEP,
    change_of_normal,
    sweep_until_converged,
)
from tfbbb.model.bayesian_model import BayesianModel

_LOG_2PI = math.log(2.0 * math.pi)
# Variance of a combination u of weights that is 0 whatever they are.
_SMALL = 1e-8


@dataclass(frozen=True)
class EPResult:
    """What expectation propagation found.

    Attributes:
        mean: E[w] under q, [d].
        covariance: Cov[w] under q, [d, d].
        log_evidence: Approximation of log p(y), in nats.
        converged: Whether the last change was within the tolerance.
        changes: The largest change of q in each iteration, in standard deviations.
        skipped: Number of sites without a proper cavity at the end. Their factors are
            old and the log evidence leaves them out.
    """

    mean: np.ndarray
    covariance: np.ndarray
    log_evidence: float
    converged: bool
    changes: list[float]
    skipped: int


def expectation_propagation(
    sites: Sites,
    prior: tuple[ArrayLike, ArrayLike],
    *,
    damping: float = 0.0,
    max_iterations: int = 200,
    tolerance: float = 1e-8,
) -> EPResult:
    """Approximates `p(w) prod_i t_i(w) / p(y)` by a normal (Minka 2001).

    q(w) is the prior times a normal factor for each site. In each pass every factor
    becomes that with which q has mean and covariance of its tilted distribution

        t_i(w) q(w) / factor_i(w)

    which minimises the divergence KL(tilted || q) site by site. No global divergence is
    minimised, and the iteration may fail to converge: then `damping` helps. The step
    becomes smaller by itself where changes stay.

    Example:

    >>> import numpy as np
    >>> from tfbbb.lab.inference import expectation_propagation
    >>> from tfbbb.lab.inference.sites import LogisticSites
    >>> sites = LogisticSites([[1.0], [2.0], [-1.0]], [1, 1, 0])
    >>> found = expectation_propagation(sites, (np.zeros(1), np.eye(1)))
    >>> found.converged
    True

    Args:
        sites: The sites, such as those of `tfbbb.lab.inference.sites`.
        prior: Mean [d] and covariance [d, d] of the normal prior; variances [d] for
            independent weights.
        damping: Share of the old natural parameters in the new ones, from 0 to below 1.
        max_iterations: Most passes over the sites.
        tolerance: Largest change of means (in standard deviations) and of logarithms of
            variances in a pass that counts as converged.

    Raises:
        ValueError: An argument is out of range, or the shapes do not fit.
    """
    fraction("damping", damping)
    positive_number("tolerance", tolerance)
    positive_integer("max_iterations", max_iterations)
    q = _start(sites, prior)
    count = len(sites.projections)

    def sweep(step: float) -> float:
        before = q.mean, q.covariance
        _refine(q, sites, step)
        return change_of_normal(before, (q.mean, q.covariance))

    changes, converged = sweep_until_converged(
        sweep, max_iterations=max_iterations, tolerance=tolerance, step=1.0 - damping
    )
    cavity = q.cavity(np.arange(count))
    log_z = sites.tilted(cavity.sites, cavity.mean, cavity.cov)[0]
    return EPResult(
        q.mean,
        q.covariance,
        q.log_evidence(cavity, log_z),
        converged,
        changes,
        count - len(cavity.sites),
    )


class _Cavity(NamedTuple):
    """Distributions of q without the factor of each of k sites: means [k, r] of u."""

    sites: np.ndarray
    mean: np.ndarray
    cov: np.ndarray


class _Approximation:
    """q(w) = p(w) prod_i s_i exp(linear_i^T u - u^T precision_i u / 2)."""

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

    def cavity(self, index: np.ndarray) -> _Cavity:
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
        return _Cavity(index, _times(cavity_cov, linear), cavity_cov)

    def matched(
        self, cavity: _Cavity, tilted: Moments
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the factors with which q has the moments of the tilted."""
        _, mean, cov = tilted
        inverse, cavity_inverse = np.linalg.inv(cov), np.linalg.inv(cavity.cov)
        linear = _times(inverse, mean) - _times(cavity_inverse, cavity.mean)
        return linear, inverse - cavity_inverse

    def log_evidence(self, cavity: _Cavity, log_z: np.ndarray) -> float:
        """Returns log of the integral of prior times approximate sites."""
        mean, cov = self._marginals(cavity.sites)
        scales = log_z + _normalizer(cavity.mean, cavity.cov) - _normalizer(mean, cov)
        own = _normalizer(self.mean, self.covariance)
        return float(own - self._prior_normalizer + scales.sum())


def _start(sites: Sites, prior: tuple[ArrayLike, ArrayLike]) -> _Approximation:
    mean, spread = (np.asarray(value, np.float64) for value in prior)
    size = sites.projections.shape[2]
    if mean.shape != (size,) or spread.shape not in ((size,), (size, size)):
        raise ValueError(
            f"The prior must have a mean of shape ({size},), and a covariance of shape "
            f"({size}, {size}) or variances of shape ({size},). "
            f"Received: shapes {mean.shape} and {spread.shape}"
        )
    full = spread if spread.ndim == 2 else np.diag(spread)
    return _Approximation(mean, full, sites)


def _refine(q: _Approximation, sites: Sites, step: float) -> None:
    """Moves the factors of all sites, as far as q stays proper."""
    cavity = q.cavity(np.arange(len(sites.projections)))
    index = cavity.sites
    tilted = sites.tilted(index, cavity.mean, cavity.cov)
    linear, precision = q.matched(cavity, tilted)
    old_linear, old_precision = q.linear[index], q.precision[index]
    while True:
        q.linear[index] = old_linear + step * (linear - old_linear)
        q.precision[index] = old_precision + step * (precision - old_precision)
        if q.refresh():
            return
        if step < SMALLEST_STEP:
            q.linear[index], q.precision[index] = old_linear, old_precision
            q.refresh()
            return
        step *= 0.5


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


class ExpectationPropagation(LinearMethod):
    """Expectation propagation for linear and logistic regression (Minka 2001).

    A model of one dense layer, whose likelihood is `Bernoulli` or `Normal`, gets the
    normal posterior of `tfbbb.lab.inference.expectation_propagation` and its
    approximation of the log evidence. For `Normal`, with the noise that the
    likelihood has, both are exact.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.random.default_rng(0).normal(size=(40, 2))
    >>> y = (x @ [1.0, -2.0] > 0).astype(int)
    >>> inputs = keras.Input((2,))
    >>> layer = tfbbb.layers.DenseVariational(1, use_bias=False, prior="normal")
    >>> network = tfbbb.BayesianModel(inputs, layer(inputs), likelihood="bernoulli")
    >>> model = tfbbb.lab.inference.ExpectationPropagation().fit(network, x, y)
    >>> model.diagnostics["converged"]
    True

    Args:
        damping: As for `expectation_propagation`.
        max_iterations: As for `expectation_propagation`.
        tolerance: As for `expectation_propagation`.
    """

    _name = "EP"
    _likelihoods = (Bernoulli, Normal)

    def __init__(
        self,
        damping: float = 0.0,
        max_iterations: int = 200,
        tolerance: float = 1e-8,
    ):
        self.damping = damping
        self.max_iterations = max_iterations
        self.tolerance = tolerance

    def _posterior(self, problem: LinearModel, verbose: int) -> BayesianModel:
        sites: Sites
        if isinstance(problem.likelihood, Bernoulli):
            sites = LogisticSites(problem.design, problem.targets)
        else:
            sites = NormalSites(problem.design, problem.targets, problem.noise)
        found = expectation_propagation(
            sites,
            (np.zeros_like(problem.prior_variances), problem.prior_variances),
            **self.get_config(),
        )
        return problem.model_with(
            found.mean,
            found.covariance,
            self.result(
                found.log_evidence - problem.log_units,
                log_evidence_is="approximation",
                converged=found.converged,
                iterations=len(found.changes),
                changes=found.changes,
                skipped_sites=found.skipped,
            ),
        )
