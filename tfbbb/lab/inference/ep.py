"""Expectation propagation with a normal q."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tfbbb.base.numbers import choice, fraction, positive_integer, positive_number
from tfbbb.base.types import ArrayLike
from tfbbb.bayes.likelihoods import Bernoulli, Normal
from tfbbb.lab.inference.linear_model import LinearMethod, LinearModel
from tfbbb.lab.inference.site_approximations import (
    FactorisedApproximation,
    FullApproximation,
    SiteApproximation,
)
from tfbbb.lab.inference.sites import (
    LogisticSites,
    NormalSites,
    Sites,
)
from tfbbb.lab.inference.sweeps import (
    SMALLEST_STEP,
    change_of_normal,
    sweep_until_converged,
)
from tfbbb.model.bayesian_model import BayesianModel


@dataclass(frozen=True)
class EPResult:
    """What expectation propagation found.

    Attributes:
        mean: E[w] under q, [d].
        covariance: Cov[w] under q, [d, d]; for a factorised q Var[w], [d].
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
    covariance: Literal["full", "factorised"] = "full",
    damping: float = 0.0,
    sites_at_once: int | None = None,
    max_iterations: int = 200,
    tolerance: float = 1e-8,
) -> EPResult:
    """Approximates `p(w) prod_i t_i(w) / p(y)` by a normal (Minka 2001).

    q(w) is the prior times a normal factor for each site. In turn each factor becomes
    that with which q has mean and covariance of its tilted distribution

        t_i(w) q(w) / factor_i(w)

    which minimises the divergence KL(tilted || q) site by site. No global divergence is
    minimised, and the iteration may fail to converge: then `damping` and
    `sites_at_once=1` help. The step becomes smaller by itself where changes stay.

    Example:

    >>> import numpy as np
    >>> from tfbbb.lab.inference import expectation_propagation
    >>> from tfbbb.lab.inference.sites import ProbitSites
    >>> sites = ProbitSites([[1.0], [2.0], [-1.0]], [1, 1, 0])
    >>> found = expectation_propagation(sites, (np.zeros(1), np.eye(1)))
    >>> found.converged
    True

    Args:
        sites: The sites, such as those of `tfbbb.lab.inference.sites`.
        prior: Mean [d] and covariance [d, d] of the normal prior; variances [d] for
            independent weights.
        covariance: `"full"`, or `"factorised"` for independent weights under q, where q
            matches means and variances of the tilted.
        damping: Share of the old natural parameters in the new ones, from 0 to below 1.
        sites_at_once: Number of sites that are refined with the same q, a positive
            integer; None for all. With 1 they are refined one after the other, which
            takes fewer but longer passes.
        max_iterations: Most passes over the sites.
        tolerance: Largest change of means (in standard deviations) and of logarithms of
            variances in a pass that counts as converged.

    Raises:
        ValueError: An argument is out of range, or the shapes do not fit.
    """
    fraction("damping", damping)
    positive_number("tolerance", tolerance)
    positive_integer("max_iterations", max_iterations)
    q = _approximation(sites, prior, covariance)
    count = len(sites.projections)
    block = positive_integer("sites_at_once", sites_at_once or count)
    blocks = [np.arange(i, min(i + block, count)) for i in range(0, count, block)]

    def sweep(step: float) -> float:
        before = q.mean, q.covariance
        for index in blocks:
            _refine(q, sites, index, step)
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


def _approximation(
    sites: Sites, prior: tuple[ArrayLike, ArrayLike], covariance: str
) -> SiteApproximation:
    mean, spread = (np.asarray(value, np.float64) for value in prior)
    size = sites.projections.shape[2]
    if mean.shape != (size,) or spread.shape not in ((size,), (size, size)):
        raise ValueError(
            f"The prior must have a mean of shape ({size},), and a covariance of shape "
            f"({size}, {size}) or variances of shape ({size},). "
            f"Received: shapes {mean.shape} and {spread.shape}"
        )
    if choice("covariance", covariance, ("full", "factorised")) == "full":
        full = spread if spread.ndim == 2 else np.diag(spread)
        return FullApproximation(mean, full, sites)
    if spread.ndim == 2:
        if np.any(spread != np.diag(np.diag(spread))):
            raise ValueError(
                "A factorised q needs a prior of independent weights; pass variances, "
                "or use covariance='full'. "
                f"Received: prior covariance {spread.tolist()}"
            )
        spread = np.diag(spread)
    return FactorisedApproximation(mean, spread, sites)


def _refine(q: SiteApproximation, sites: Sites, index: np.ndarray, step: float) -> None:
    """Moves the factors of some sites, as far as q stays proper."""
    cavity = q.cavity(index)
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


class ExpectationPropagation(LinearMethod):
    """Expectation propagation for linear and logistic regression (Minka 2001).

    A model of one dense layer, whose likelihood is `Bernoulli` or `Normal`, gets the
    normal posterior of `tfbbb.lab.inference.expectation_propagation` and its
    approximation of the log evidence. For `Normal`, with the noise that the
    likelihood has, both are exact with `covariance="full"`.

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
        covariance: `"full"` or `"factorised"`.
        damping: As for `expectation_propagation`.
        sites_at_once: As for `expectation_propagation`.
        max_iterations: As for `expectation_propagation`.
        tolerance: As for `expectation_propagation`.
    """

    _name = "EP"
    _likelihoods = (Bernoulli, Normal)

    def __init__(
        self,
        covariance: Literal["full", "factorised"] = "full",
        damping: float = 0.0,
        sites_at_once: int | None = None,
        max_iterations: int = 200,
        tolerance: float = 1e-8,
    ):
        self.covariance = covariance
        self.damping = damping
        self.sites_at_once = sites_at_once
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
