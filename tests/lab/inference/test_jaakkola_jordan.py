import json

import numpy as np
import pytest
from scipy import special

from tests.inference.linear_regression import linear_model
from tests.lab.inference.test_ep import LABELS, X, by_quadrature
from tfbbb.lab.inference import JaakkolaJordan, local_bound
from tfbbb.lab.inference.jaakkola_jordan import curvature, log_sigmoid_bound

PRIOR = np.array([0.2, -0.1]), np.array([[1.5, 0.3], [0.3, 0.9]])


def test_bound_is_below_the_sigmoid_and_tight_at_xi():
    u, xi = np.linspace(-12.0, 12.0, 481), np.array([[0.0], [1e-5], [0.7], [5.0]])
    gap = special.log_expit(u) - log_sigmoid_bound(u, xi)
    assert gap.min() > -1e-12
    for sign in (-1.0, 1.0):
        np.testing.assert_allclose(
            log_sigmoid_bound(sign * xi, xi), special.log_expit(sign * xi), atol=1e-12
        )


def test_posterior_and_evidence_are_near_quadrature():
    signs = 2 * LABELS - 1
    log_z, mean, cov = by_quadrature(
        lambda w: special.log_expit(signs * (w @ X.T)).sum(1), *PRIOR
    )
    found = local_bound(X, LABELS, PRIOR)
    assert found.converged
    assert np.min(np.diff(found.bounds)) > -1e-12
    assert log_z - 0.3 < found.bounds[-1] < log_z
    deviations = np.sqrt(np.diag(cov))
    assert np.all(np.abs(found.mean - mean) < 0.2 * deviations)
    # Bounds from below are narrower than the posterior.
    assert np.all(np.diag(found.covariance) < np.diag(cov))
    assert np.all(np.diag(found.covariance) > 0.6 * np.diag(cov))


def test_evidence_bound_is_the_expectation_under_q():
    # E_q[log bound] - KL(q || p), in closed form from its parts.
    prior = PRIOR[0], np.array([1.5, 0.9])
    found = local_bound(X, LABELS, prior)
    cov = found.covariance
    signs = 2 * LABELS - 1
    logits = X @ found.mean
    squares = ((X @ cov) * X).sum(1) + logits**2
    # The expected logit and its square, in a bound that is linear in both.
    expected = log_sigmoid_bound(signs * logits, found.xi) - curvature(found.xi) * (
        squares - logits**2
    )
    deviation = found.mean - prior[0]
    divergence = 0.5 * (
        np.sum(np.diag(cov) / prior[1])
        + np.sum(deviation**2 / prior[1])
        - 2
        + np.log(prior[1]).sum()
        - np.linalg.slogdet(cov)[1]
    )
    np.testing.assert_allclose(found.bounds[-1], expected.sum() - divergence, rtol=1e-9)
    np.testing.assert_allclose(found.xi**2, squares, rtol=1e-3)


def test_model_has_the_posterior_and_the_bound():
    model = JaakkolaJordan().fit(
        linear_model(2, 0.7, "bernoulli", use_bias=False), X, LABELS
    )
    found = local_bound(X, LABELS, (np.zeros(2), np.full(2, 0.49)))
    kernel = model.variational_layers[0].kernel
    np.testing.assert_allclose(kernel.mean[:, 0], found.mean, rtol=1e-5)
    np.testing.assert_allclose(
        kernel.variance[:, 0], np.diag(found.covariance), rtol=1e-4
    )
    assert model.log_evidence == pytest.approx(found.bounds[-1], rel=1e-6)
    assert model.diagnostics["log_evidence_is"] == "lower bound"
    json.dumps(model.inference.get_config())


def test_other_models_are_refused_by_name():
    with pytest.raises(ValueError, match="JaakkolaJordan takes the likelihood"):
        JaakkolaJordan().fit(linear_model(2, 0.7, "normal"), X, LABELS)
    with pytest.raises(ValueError, match="0 and 1"):
        local_bound(X, 2 * LABELS, PRIOR)
