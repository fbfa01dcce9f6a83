"""Logistic regression with a local variational bound."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from tfbbb.base.numbers import positive_integer, positive_number
from tfbbb.base.types import ArrayLike
from tfbbb.bayes.likelihoods import Bernoulli
from tfbbb.lab.inference.linear_model import LinearMethod, LinearModel
from tfbbb.lab.inference.sweeps import sweep_until_converged
from tfbbb.model.bayesian_model import BayesianModel


@dataclass(frozen=True)
class LocalBoundResult:
    """What the local variational bound gave.

    Attributes:
        mean: E[w] under q, [d].
        covariance: Cov[w] under q, [d, d].
        xi: Where the bound of each row is tight, [n].
        bounds: Lower bound of the log evidence after each iteration, in nats.
        converged: Whether the last change was within the tolerance.
    """

    mean: np.ndarray
    covariance: np.ndarray
    xi: np.ndarray
    bounds: list[float]
    converged: bool


def curvature(xi: ArrayLike) -> np.ndarray:
    """Returns `lambda(xi) = tanh(xi / 2) / (4 xi)`, 1 / 8 at 0."""
    xi = np.abs(np.asarray(xi, np.float64))
    small = xi < 1e-4
    safe = np.where(small, 1.0, xi)
    return np.where(small, 0.125 - xi**2 / 96.0, np.tanh(0.5 * safe) / (4.0 * safe))


def log_sigmoid_bound(u: ArrayLike, xi: ArrayLike) -> np.ndarray:
    """Returns a lower bound of `log sigma(u)`, equal to it at u = xi and u = -xi.

        sigma(u) >= sigma(xi) exp((u - xi) / 2 - lambda(xi) (u^2 - xi^2))

    Example:

    >>> from tfbbb.lab.inference.jaakkola_jordan import log_sigmoid_bound
    >>> round(float(log_sigmoid_bound(2.0, 2.0)), 4)  # log sigma(2)
    -0.1269
    """
    u, xi = np.asarray(u, np.float64), np.asarray(xi, np.float64)
    return special.log_expit(xi) + 0.5 * (u - xi) - curvature(xi) * (u**2 - xi**2)


def local_bound(
    x: ArrayLike,
    y: ArrayLike,
    prior: tuple[ArrayLike, ArrayLike],
    *,
    max_iterations: int = 1000,
    tolerance: float = 1e-8,
) -> LocalBoundResult:
    """Approximates the posterior of a logistic regression (Jaakkola and Jordan 2000).

    With the bound of `log_sigmoid_bound` in place of each likelihood, the posterior is
    normal:

        S^-1 = S_0^-1 + 2 sum_i lambda(xi_i) x_i x_i^T
        m = S (S_0^-1 m_0 + sum_i (y_i - 1/2) x_i)

    and the bound of the evidence is largest at `xi_i^2 = x_i^T (S + m m^T) x_i`. Both
    steps in turn never lower it (expectation maximisation).

    Example:

    >>> import numpy as np
    >>> from tfbbb.lab.inference import local_bound
    >>> x = np.array([[1.0], [2.0], [-1.0]])
    >>> found = local_bound(x, [1, 1, 0], (np.zeros(1), np.eye(1)))
    >>> found.converged
    True

    Args:
        x: Inputs, [n, d].
        y: Classes 0 and 1, [n].
        prior: Mean [d] and covariance [d, d] of the prior; variances [d] for
            independent weights.
        max_iterations: Most iterations.
        tolerance: Growth of the bound in nats that counts as converged.

    Raises:
        ValueError: An argument is out of range.
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64).reshape(-1)
    if not np.isin(y, (0.0, 1.0)).all():
        raise ValueError(
            f"The classes must be 0 and 1. Received: {np.unique(y)[:5].tolist()}"
        )
    positive_integer("max_iterations", max_iterations)
    positive_number("tolerance", tolerance)
    prior_mean, prior_cov = (np.asarray(value, np.float64) for value in prior)
    if prior_cov.ndim == 1:
        prior_cov = np.diag(prior_cov)
    prior_precision = np.linalg.inv(prior_cov)
    linear = prior_precision @ prior_mean + x.T @ (y - 0.5)
    prior_terms = prior_mean @ prior_precision @ prior_mean
    prior_terms += np.linalg.slogdet(prior_cov)[1]
    # The best xi of a row under the prior.
    xi = np.sqrt(((x @ prior_cov) * x).sum(1) + (x @ prior_mean) ** 2)
    bounds: list[float] = []
    mean, cov = prior_mean, prior_cov

    def sweep(_: float) -> float:
        nonlocal xi, mean, cov
        if bounds:
            xi = np.sqrt(((x @ cov) * x).sum(1) + (x @ mean) ** 2)
        weights = curvature(xi)
        precision = prior_precision + 2.0 * x.T @ (weights[:, None] * x)
        mean = np.linalg.solve(precision, linear)
        bound = (special.log_expit(xi) - 0.5 * xi + weights * xi**2).sum()
        bound += 0.5 * (mean @ linear - prior_terms)
        cov = np.linalg.inv(precision)
        bound -= 0.5 * np.linalg.slogdet(precision)[1]
        bounds.append(float(bound))
        return bounds[-1] - bounds[-2] if len(bounds) > 1 else np.inf

    _, converged = sweep_until_converged(
        sweep, max_iterations=max_iterations, tolerance=tolerance
    )
    return LocalBoundResult(mean, cov, xi, bounds, converged)


class JaakkolaJordan(LinearMethod):
    """The local variational bound of logistic regression (Jaakkola and Jordan 2000).

    A model of one dense layer and the likelihood `Bernoulli` gets the normal posterior
    of `tfbbb.lab.inference.local_bound`. Its `log_evidence` is a lower bound; the
    diagnostics have it after each iteration.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.random.default_rng(0).normal(size=(40, 2))
    >>> y = (x @ [1.0, -2.0] > 0).astype(int)
    >>> inputs = keras.Input((2,))
    >>> layer = tfbbb.layers.DenseVariational(1, use_bias=False, prior="normal")
    >>> network = tfbbb.BayesianModel(inputs, layer(inputs), likelihood="bernoulli")
    >>> model = tfbbb.lab.inference.JaakkolaJordan().fit(network, x, y)
    >>> model.log_evidence == model.diagnostics["bound"][-1]
    True

    Args:
        max_iterations: Most iterations.
        tolerance: Growth of the bound in nats that counts as converged.
    """

    _name = "JaakkolaJordan"
    _likelihoods = (Bernoulli,)

    def __init__(self, max_iterations: int = 1000, tolerance: float = 1e-8):
        self.max_iterations = positive_integer("max_iterations", max_iterations)
        self.tolerance = positive_number("tolerance", tolerance)

    def _posterior(self, problem: LinearModel, verbose: int) -> BayesianModel:
        variances = problem.prior_variances
        found = local_bound(
            problem.design,
            problem.targets,
            (np.zeros_like(variances), variances),
            **self.get_config(),
        )
        return problem.model_with(
            found.mean,
            found.covariance,
            self.result(
                found.bounds[-1],
                log_evidence_is="lower bound",
                bound=found.bounds,
                converged=found.converged,
                iterations=len(found.bounds),
            ),
        )
