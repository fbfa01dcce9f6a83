import json
import math

import numpy as np
import pytest
from scipy import special, stats

import tfbbb
from tests.inference.linear_regression import linear_model
from tfbbb.lab.inference import ExpectationPropagation, expectation_propagation
from tfbbb.lab.inference.sites import LogisticSites, NormalSites

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(30, 2)) @ [[1.0, 0.4], [0.0, 0.8]]
LABELS = (X @ [1.5, -1.0] + GENERATOR.logistic(size=30) > 0).astype(int)
NOISE, PRIOR_SCALE = 0.5, 0.7
Y = X @ [0.5, -0.8] + NOISE * GENERATOR.normal(size=30)
PRIOR = np.zeros(2), PRIOR_SCALE**2 * np.eye(2)


def by_quadrature(log_likelihood, mean, cov, reach=8.0, count=400):
    """Returns log evidence, mean and covariance of a posterior of two weights."""
    axis = np.linspace(-reach, reach, count)
    steps = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    w = mean + steps @ np.linalg.cholesky(cov).T
    log_joint = log_likelihood(w) - 0.5 * (steps**2).sum(1) - math.log(2 * math.pi)
    log_z = special.logsumexp(log_joint) + 2 * math.log(axis[1] - axis[0])
    share = np.exp(log_joint - special.logsumexp(log_joint))
    found = share @ w
    return log_z, found, (w - found).T @ ((w - found) * share[:, None])


@pytest.mark.parametrize(("mean", "scale"), [(0.3, 0.8), (-4.0, 2.0), (6.0, 30.0)])
def test_tilted_moments_are_those_of_quadrature(mean, scale):
    for label, sign in ((1, 1.0), (0, -1.0)):
        u = mean + scale * np.linspace(-14.0, 14.0, 400_001)
        log_terms = special.log_expit(sign * u) + stats.norm.logpdf(u, mean, scale)
        share = np.exp(log_terms - special.logsumexp(log_terms))
        expected_mean = share @ u
        expected = (
            special.logsumexp(log_terms) + math.log(u[1] - u[0]),
            expected_mean,
            share @ (u - expected_mean) ** 2,
        )
        found = LogisticSites([[1.0]], [label]).tilted(
            np.array([0]), np.array([[mean]]), np.array([[[scale**2]]])
        )
        np.testing.assert_allclose(
            [float(np.squeeze(value)) for value in found], expected, rtol=1e-7
        )


def test_linear_regression_has_the_exact_posterior_and_evidence():
    found = expectation_propagation(NormalSites(X, Y, NOISE), PRIOR)
    precision = X.T @ X / NOISE**2 + np.eye(2) / PRIOR_SCALE**2
    covariance = np.linalg.inv(precision)
    evidence = stats.multivariate_normal(
        np.zeros(30), NOISE**2 * np.eye(30) + PRIOR_SCALE**2 * X @ X.T
    ).logpdf(Y)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-9)
    np.testing.assert_allclose(found.mean, covariance @ X.T @ Y / NOISE**2, rtol=1e-9)
    np.testing.assert_allclose(found.log_evidence, evidence, rtol=1e-9)
    assert found.converged
    assert found.skipped == 0


def test_classification_is_close_to_quadrature():
    signs = 2 * LABELS - 1
    mean, cov = np.array([0.2, -0.1]), np.array([[1.5, 0.3], [0.3, 0.9]])
    log_z, exact_mean, exact_cov = by_quadrature(
        lambda w: special.log_expit(signs * (w @ X.T)).sum(1), mean, cov
    )
    found = expectation_propagation(LogisticSites(X, LABELS), (mean, cov))
    assert found.converged
    # EP is an approximation: its errors here are far below the posterior's spread.
    deviations = np.sqrt(np.diag(exact_cov))
    assert np.all(np.abs(found.mean - exact_mean) < 0.02 * deviations)
    np.testing.assert_allclose(found.covariance, exact_cov, rtol=0.03, atol=0.002)
    np.testing.assert_allclose(found.log_evidence, log_z, atol=0.01)
    damped = expectation_propagation(LogisticSites(X, LABELS), (mean, cov), damping=0.3)
    np.testing.assert_allclose(damped.mean, found.mean, rtol=1e-6)
    np.testing.assert_allclose(damped.log_evidence, found.log_evidence, rtol=1e-8)


def test_one_site_is_matched_exactly():
    mean, cov = np.array([0.2, -0.1]), np.array([[1.5, 0.3], [0.3, 0.9]])
    log_z, exact_mean, exact_cov = by_quadrature(
        lambda w: special.log_expit(w @ X[0]), mean, cov
    )
    found = expectation_propagation(LogisticSites(X[:1], [1]), (mean, cov))
    np.testing.assert_allclose(found.mean, exact_mean, rtol=1e-7)
    np.testing.assert_allclose(found.covariance, exact_cov, rtol=1e-7)
    np.testing.assert_allclose(found.log_evidence, log_z, rtol=1e-7)


def test_model_has_the_posterior_and_the_evidence_in_raw_units():
    likelihood = tfbbb.likelihoods.Normal(scale=NOISE, standardize=False)
    given = linear_model(2, PRIOR_SCALE, likelihood, use_bias=False)
    model = ExpectationPropagation().fit(given, X, Y)
    found = expectation_propagation(NormalSites(X, Y, NOISE), PRIOR)
    kernel = model.variational_layers[0].kernel
    np.testing.assert_allclose(kernel.mean[:, 0], found.mean, rtol=1e-5)
    factor = kernel.posterior.scale_tril(kernel.parameters)
    np.testing.assert_allclose(factor @ factor.numpy().T, found.covariance, rtol=1e-4)
    assert model.log_evidence == pytest.approx(found.log_evidence, rel=1e-6)
    assert model.diagnostics["converged"]
    json.dumps(model.inference.get_config())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            lambda: linear_model(2, PRIOR_SCALE, "poisson"),
            "EP takes the likelihood `Bernoulli`",
        ),
        (
            lambda: linear_model(2, PRIOR_SCALE, "bernoulli", activation="relu"),
            "EP needs a network of one dense layer",
        ),
    ],
)
def test_other_models_are_refused_by_name(model, message):
    with pytest.raises(ValueError, match=message):
        ExpectationPropagation().fit(model(), X, LABELS)
