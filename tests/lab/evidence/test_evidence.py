"""Evidence, bounds and estimates of linear models agree with the closed form."""

import numpy as np
import pytest
from scipy import stats

from tests.lab.evidence.gaussian import (
    NOISE,
    best_model,
    exact_evidence,
    least_gap,
    polynomial,
)
from tfbbb.lab.evidence import (
    description_length,
    elbo,
    importance_weighted_bound,
    linear_log_evidence,
)
from tfbbb.model.conversion import with_posterior

COLUMNS, TARGETS = polynomial(3)
ROWS = COLUMNS.astype("float32"), TARGETS[:, None].astype("float32")
EVIDENCE = exact_evidence(COLUMNS, TARGETS)
# The log densities of 30 rows are sums of single precision.
ROUNDING = 2e-4


@pytest.fixture(scope="module")
def full():
    return best_model(COLUMNS, TARGETS)


@pytest.fixture(scope="module")
def factorised():
    return best_model(COLUMNS, TARGETS, "mean_field_normal")


@pytest.mark.parametrize("size", [2, 5, 40])
def test_linear_evidence_is_the_density_of_the_targets(size):
    random = np.random.default_rng(size)
    x, y = random.normal(size=(12, size)), random.normal(size=(12, 2))
    root = random.normal(size=(size, size)) / size + np.eye(size)
    for covariance, mean in [
        (0.5 * np.eye(size), 0.0),
        (np.diag(random.uniform(0.1, 2.0, size)), 1.0),
        (root @ root.T, random.normal(size=size)),
    ]:
        given = np.diag(covariance) if np.all(mean == 1.0) else covariance
        means = x @ np.broadcast_to(mean, size)
        exact = stats.multivariate_normal(
            means, x @ covariance @ x.T + 0.09 * np.eye(12)
        )
        found = linear_log_evidence(
            x, y, noise_scale=0.3, prior_covariance=given, prior_mean=mean
        )
        assert found == pytest.approx(exact.logpdf(y.T).sum(), abs=1e-8)


def test_small_noise_costs_linear_evidence_no_digits():
    x = np.array([[1.0], [1.0]])
    y, noise = np.array([1.0, 1.0 + 1e-9]), 1e-9
    # Sum and difference are independent: N(0, 4 + 2e-18) and N(0, 2e-18).
    exact = stats.norm.logpdf(y.sum(), scale=2.0)
    exact += stats.norm.logpdf(y[1] - y[0], scale=np.sqrt(2.0) * noise) + np.log(2.0)
    found = linear_log_evidence(x, y, noise_scale=noise)
    assert found == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": np.ones(3)}, "must be a matrix"),
        ({"y": np.full(30, np.nan)}, "30 of y that are not"),
        ({"noise_scale": 0.0}, "`noise_scale` must be"),
        ({"prior_covariance": -1.0}, "Received: prior_covariance=-1.0"),
        ({"prior_covariance": np.ones((4, 4))}, "least eigenvalue"),
        ({"prior_mean": [1.0, 2.0]}, "a number or 4 numbers"),
    ],
)
def test_arguments_without_a_linear_evidence_are_refused(arguments, message):
    given = {"x": COLUMNS, "y": TARGETS, "noise_scale": NOISE, **arguments}
    with pytest.raises(ValueError, match=message):
        linear_log_evidence(**given)


def test_elbo_of_the_exact_posterior_is_the_evidence(full):
    bound = elbo(full, *ROWS, num_samples=2000)
    assert abs(bound.value - EVIDENCE) < 4.5 * bound.standard_error + ROUNDING
    assert bound.standard_error < 0.1
    length = description_length(full, *ROWS, num_samples=2000)
    assert -bound.bits == pytest.approx(length.total, rel=1e-6)


def test_elbo_of_the_best_factorised_normal_has_the_least_gap(factorised):
    bound = elbo(factorised, *ROWS, num_samples=2000)
    expected = EVIDENCE - least_gap(COLUMNS, TARGETS)
    assert abs(bound.value - expected) < 4.5 * bound.standard_error + ROUNDING
    assert least_gap(COLUMNS, TARGETS) > 10 * bound.standard_error


def test_importance_weights_of_the_exact_posterior_are_constant(full):
    bound = importance_weighted_bound(full, *ROWS, importance_samples=1, repetitions=50)
    assert bound.value == pytest.approx(EVIDENCE, abs=ROUNDING)
    assert bound.standard_error < ROUNDING
    assert bound.diagnostics["effective_sample_size"] == pytest.approx(50, rel=1e-4)


def test_importance_weighted_bound_rises_to_the_evidence(factorised):
    bounds = [
        importance_weighted_bound(
            factorised,
            *ROWS,
            importance_samples=k,
            repetitions=4000 // k,
            batch_size=11,
        )
        for k in (1, 10, 100, 1000)
    ]
    values = [bound.value for bound in bounds]
    # The draws are the same, so this holds by Jensen's inequality for each of them.
    assert values == sorted(values)
    first = elbo(factorised, *ROWS, num_samples=2000)
    error = np.hypot(first.standard_error, bounds[0].standard_error)
    assert abs(values[0] - first.value) < 4.5 * error
    assert abs(values[-1] - EVIDENCE) < 4.5 * bounds[-1].standard_error + 0.05
    assert values[0] < EVIDENCE - 0.2


def test_models_without_a_density_are_refused(full):
    ensemble = with_posterior(full, "mean_field_normal", members=2)
    points = with_posterior(full, "point")
    for function in (elbo, importance_weighted_bound):
        with pytest.raises(ValueError, match="2 members"):
            function(ensemble, *ROWS)
        with pytest.raises(ValueError, match="a posterior with a density"):
            function(points, *ROWS)
