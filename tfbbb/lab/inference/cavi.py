"""Coordinate ascent variational inference for linear regression."""

from typing import Any, Literal

import numpy as np

from tfbbb.base.numbers import positive_integer, positive_number
from tfbbb.bayes.likelihoods import Normal
from tfbbb.inference.method import InferenceMethod
from tfbbb.lab.inference.conjugate_regression import ConjugateRegression
from tfbbb.lab.inference.gamma import Gamma
from tfbbb.lab.inference.linear_model import LinearMethod, LinearModel
from tfbbb.lab.inference.sweeps import change_of_normal, sweep_until_converged
from tfbbb.model.bayesian_model import BayesianModel


class CAVI(LinearMethod):
    """Coordinate ascent variational inference of a linear regression.

        q(w, gamma, lambda) = q(w) q(gamma) q(lambda)

    Each factor in turn becomes its optimum given the others (Bishop 2006, section
    10.3), so that the evidence lower bound never falls:

        q(w) = N(P^-1 h, P^-1),   P = E[gamma] X^T X + E[lambda],   h = E[gamma] X^T y
        q(gamma) = Gamma(a + N / 2, b + E[|y - X w|^2] / 2)

    With `covariance="factorised"` every weight has a factor of its own,
    `N((h_j - sum_{k != j} P_jk E[w_k]) / P_jj, 1 / P_jj)`. The precision gamma of the
    noise is unknown unless the likelihood is `Normal(scale=...)`. The precisions
    lambda of kernel and bias are unknown where their prior is `GammaNormal`; with the
    prior `Normal` they are given.

    The likelihood of the fitted model is `Normal` with the variance E[1 / gamma].
    `log_evidence` is the lower bound, in the units of the targets; the diagnostics have
    the bound after each iteration.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.random.default_rng(0).normal(size=(40, 2))
    >>> inputs = keras.Input((2,))
    >>> layer = tfbbb.layers.DenseVariational(1, use_bias=False, prior="gamma_normal")
    >>> network = tfbbb.BayesianModel(inputs, layer(inputs))
    >>> model = tfbbb.lab.inference.CAVI().fit(network, x, x @ [1.0, -2.0])
    >>> model.diagnostics["converged"]
    True

    Args:
        covariance: `"full"` or `"factorised"`: whether the weights are independent
            under q.
        noise_shape: Shape of the gamma prior of the noise precision in standard units
            of the targets, positive.
        noise_rate: Its rate, positive.
        max_iterations: Most passes over the factors.
        tolerance: Largest change of means and precisions, in standard deviations and as
            a share, that counts as converged.
    """

    _name = "CAVI"
    _likelihoods = (Normal,)
    _takes_precisions = True

    def __init__(
        self,
        covariance: Literal["full", "factorised"] = "full",
        noise_shape: float = 1.0,
        noise_rate: float = 1.0,
        max_iterations: int = 1000,
        tolerance: float = 1e-8,
    ):
        self.covariance = covariance
        self.noise_shape = positive_number("noise_shape", noise_shape)
        self.noise_rate = positive_number("noise_rate", noise_rate)
        self.max_iterations = positive_integer("max_iterations", max_iterations)
        self.tolerance = positive_number("tolerance", tolerance)

    def _posterior(self, problem: LinearModel, verbose: int) -> BayesianModel:
        q = conjugate_regression(problem, self.noise_shape, self.noise_rate)
        bounds, converged = coordinate_ascent(
            q, max_iterations=self.max_iterations, tolerance=self.tolerance
        )
        return conjugate_model(
            problem, q, self, bounds, converged=converged, iterations=len(bounds)
        )


def coordinate_ascent(
    q: ConjugateRegression, *, max_iterations: int = 1000, tolerance: float = 1e-8
) -> tuple[list[float], bool]:
    """Updates the factors of q in turn; returns the bounds, and whether q converged."""
    bounds: list[float] = []

    def sweep(_: float) -> float:
        # Whole steps: no update lowers the bound.
        before, noise = (q.mean.copy(), q.covariance.copy()), q.noise_precision
        q.update()
        bounds.append(q.bound())
        change = change_of_normal(before, (q.mean, q.covariance))
        return max(change, abs(np.log(q.noise_precision / noise)))

    _, converged = sweep_until_converged(
        sweep, max_iterations=max_iterations, tolerance=tolerance
    )
    return bounds, converged


def conjugate_regression(
    problem: LinearModel, noise_shape: float, noise_rate: float
) -> ConjugateRegression:
    """Returns the regression of a linear model, with q equal to the prior."""
    noise: float | Gamma = problem.noise
    if problem.learns_noise:
        noise = Gamma(noise_shape, noise_rate * problem.target_unit**2)
    return ConjugateRegression(
        problem.design,
        problem.targets,
        problem.priors,
        noise,
        factorised=problem.factorised,
    )


def conjugate_model(
    problem: LinearModel,
    q: ConjugateRegression,
    method: InferenceMethod,
    bounds: list[float],
    **diagnostics: Any,
) -> BayesianModel:
    """Returns a model with q(w) and the expected noise of q."""
    if q.noise is not None:
        # E[1 / gamma], which is finite for a shape above 1.
        excess = max(q.noise.shape - 1.0, 0.5)
        problem.set_noise(float(np.sqrt(q.noise.rate / excess)))
        diagnostics |= {"noise_shape": q.noise.shape, "noise_rate": q.noise.rate}
    bounds = [bound - problem.log_units for bound in bounds]
    result = method.result(
        bounds[-1], log_evidence_is="lower bound", bound=bounds, **diagnostics
    )
    return problem.model_with(q.mean, q.covariance, result)
