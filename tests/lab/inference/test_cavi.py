import json
import math

import numpy as np
import pytest
from scipy import integrate, stats

import tfbbb
from tests.inference.linear_regression import linear_model
from tfbbb.lab.inference import CAVI
from tfbbb.lab.inference.cavi import coordinate_ascent
from tfbbb.lab.inference.conjugate_regression import ConjugateRegression
from tfbbb.lab.inference.gamma import Gamma
from tfbbb.lab.inference.linear_model import PriorOfColumns

NOISE, PRIOR_SCALE = 0.5, 0.7
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(40, 3)) @ (np.eye(3) + 0.4 * GENERATOR.normal(size=(3, 3)))
Y = X @ [0.5, -0.8, 0.3] + NOISE * GENERATOR.normal(size=40)
PRECISION = X.T @ X / NOISE**2 + np.eye(3) / PRIOR_SCALE**2
MEAN = np.linalg.solve(PRECISION, X.T @ Y / NOISE**2)
EVIDENCE = stats.multivariate_normal(
    np.zeros(40), NOISE**2 * np.eye(40) + PRIOR_SCALE**2 * X @ X.T
).logpdf(Y)
GIVEN = [PriorOfColumns(slice(0, 3), PRIOR_SCALE**2, None)]
UNKNOWN = [
    PriorOfColumns(slice(0, 2), 1.0, (2.0, 3.0)),
    PriorOfColumns(slice(2, 3), 0.5, None),
]


def test_given_noise_has_the_closed_form_and_the_evidence():
    q = ConjugateRegression(X, Y, GIVEN, NOISE)
    bounds, converged = coordinate_ascent(q)
    assert converged
    np.testing.assert_allclose(q.mean, MEAN, rtol=1e-10)
    np.testing.assert_allclose(q.covariance, np.linalg.inv(PRECISION), rtol=1e-10)
    np.testing.assert_allclose(bounds[0], EVIDENCE, rtol=1e-10)


def test_factorised_weights_have_exact_means_and_the_diagonal_of_the_precision():
    q = ConjugateRegression(X, Y, GIVEN, NOISE, factorised=True)
    bounds, converged = coordinate_ascent(q, tolerance=1e-13)
    assert converged
    np.testing.assert_allclose(q.mean, MEAN, rtol=1e-10)
    np.testing.assert_allclose(q.covariance, 1 / np.diag(PRECISION), rtol=1e-10)
    gap = 0.5 * (np.log(np.diag(PRECISION)).sum() - np.linalg.slogdet(PRECISION)[1])
    np.testing.assert_allclose(bounds[-1], EVIDENCE - gap, rtol=1e-10)


@pytest.mark.parametrize("factorised", [False, True])
def test_no_update_lowers_the_bound(factorised):
    q = ConjugateRegression(X, Y, UNKNOWN, Gamma(1.5, 0.7), factorised=factorised)
    bounds = [q.bound()]
    for _ in range(30):
        for update in (q.update_weights, q.update_noise, q.update_precisions):
            update()
            bounds.append(q.bound())
    assert bounds[-1] > bounds[0] + 1.0
    assert np.min(np.diff(bounds)) > -1e-10 * abs(bounds[0])
    assert np.ptp(bounds[-4:]) < 1e-8


def test_factors_of_precisions_are_their_closed_form():
    q = ConjugateRegression(X, Y, UNKNOWN, Gamma(1.5, 0.7))
    coordinate_ascent(q, tolerance=1e-14)
    weights = np.random.default_rng(1).multivariate_normal(
        q.mean, q.covariance, size=200_000
    )
    squares = ((Y - weights @ X.T) ** 2).sum(1)
    error = squares.std() / math.sqrt(len(squares))
    assert q.noise.shape == pytest.approx(1.5 + 20, rel=1e-10)
    assert abs(q.noise.rate - 0.7 - squares.mean() / 2) < 4 * error / 2
    precision = q.precisions[0]
    expected = 3.0 + 0.5 * (q.mean[:2] ** 2 + np.diag(q.covariance)[:2]).sum()
    np.testing.assert_allclose(precision, [3.0, expected], rtol=1e-10)
    assert q.precisions[1] is None
    closed = X.T @ X * q.noise.mean + np.diag([precision.mean] * 2 + [1 / 0.5])
    np.testing.assert_allclose(q.covariance, np.linalg.inv(closed), rtol=1e-10)


def test_bound_is_below_the_evidence_and_near_it():
    # Integrates out the weights in closed form, and the noise by quadrature.
    q = ConjugateRegression(X, Y, GIVEN, Gamma(2.0, 1.0))
    bounds, _ = coordinate_ascent(q)

    def log_joint(gamma):
        cov = np.eye(40) / gamma + PRIOR_SCALE**2 * X @ X.T
        normal = stats.multivariate_normal(np.zeros(40), cov)
        return normal.logpdf(Y) + stats.gamma.logpdf(gamma, 2.0, scale=1.0)

    peak = log_joint(q.noise.mean)
    integral, _ = integrate.quad(
        lambda gamma: math.exp(log_joint(gamma) - peak), 0.5, 15.0
    )
    evidence = peak + math.log(integral)
    assert evidence - 0.2 < bounds[-1] < evidence


@pytest.mark.parametrize("factorised", [False, True])
def test_minibatches_reach_the_optimum_of_coordinate_ascent(factorised):
    generator = np.random.default_rng(3)
    x = generator.normal(size=(600, 3)) @ (np.eye(3) + 0.3)
    y = x @ [0.5, -0.8, 0.3] + NOISE * generator.normal(size=600)
    exact, q = (
        ConjugateRegression(x, y, UNKNOWN, Gamma(1.5, 0.7), factorised=factorised)
        for _ in range(2)
    )
    bounds, _ = coordinate_ascent(exact)
    steps = 0
    for _ in range(100):
        order = generator.permutation(600)
        for first in range(0, 600, 60):
            steps += 1
            q.update(order[first : first + 60], (steps + 1) ** -0.8)
    # The noise of a natural parameter is about sqrt(step / 2) of the spread of the
    # estimates of a minibatch, and that of the mean is sqrt(10) deviations.
    tolerance = 4 * math.sqrt(10 * steps**-0.8 / 2)
    deviations = np.sqrt(exact.variances)
    assert np.all(np.abs(q.mean - exact.mean) < tolerance * deviations)
    np.testing.assert_allclose(q.variances, exact.variances, rtol=0.05)
    assert bounds[-1] - 0.5 < q.bound() < bounds[-1] + 1e-9


def test_model_has_the_exact_posterior_in_raw_units():
    likelihood = tfbbb.likelihoods.Normal(scale=NOISE, standardize=False)
    model = CAVI().fit(linear_model(3, PRIOR_SCALE, likelihood, use_bias=False), X, Y)
    kernel = model.variational_layers[0].kernel
    np.testing.assert_allclose(kernel.mean[:, 0], MEAN, rtol=1e-5)
    np.testing.assert_allclose(
        kernel.variance[:, 0], np.diag(np.linalg.inv(PRECISION)), rtol=1e-5
    )
    assert model.log_evidence == pytest.approx(EVIDENCE, rel=1e-6)
    assert model.diagnostics["log_evidence_is"] == "lower bound"
    json.dumps(model.inference.get_config())


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (
            lambda: linear_model(3, PRIOR_SCALE, "bernoulli"),
            "CAVI takes the likelihood `Normal`",
        ),
        (lambda: linear_model(3, PRIOR_SCALE, prior="laplace"), "CAVI takes the prior"),
        (lambda: linear_model(3, PRIOR_SCALE, activation="tanh"), "one dense layer"),
    ],
)
def test_other_models_are_refused_by_name(network, message):
    with pytest.raises(ValueError, match=message):
        CAVI().fit(network(), X, (Y > 0).astype(float))
