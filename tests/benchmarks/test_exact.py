import numpy as np
import pytest
from scipy import stats

from tests.benchmarks.programs import load, run_smoke

exact = load("exact")


def test_evidence_is_the_integral_of_the_likelihood():
    columns, targets = exact.design("linear", 0, 2)
    assert columns.shape[1] == 2
    best, *_ = np.linalg.lstsq(columns, targets, rcond=None)
    peak = stats.norm.logpdf(targets, columns @ best, exact.NOISE).sum()

    # The trapezoidal rule is exact for a function that vanishes at both ends.
    steps = np.linspace(-2.0, 2.0, 401)
    weights = np.stack(np.meshgrid(*(best[:, np.newaxis] + steps)), axis=-1)
    means = weights @ columns.T
    log_likelihood = stats.norm.logpdf(targets, means, exact.NOISE).sum(axis=-1)
    prior = stats.norm.pdf(weights, scale=exact.PRIOR_SCALE).prod(axis=-1)
    integral = (np.exp(log_likelihood - peak) * prior).sum() * (
        steps[1] - steps[0]
    ) ** 2
    expected = peak + np.log(integral)
    assert exact.exact_evidence(columns, targets) == pytest.approx(expected, rel=1e-6)


def test_least_gap_is_the_divergence_of_the_best_factorised_normal():
    columns, _ = exact.design("polynomial", 1, 4)
    precision = columns.T @ columns / exact.NOISE**2
    precision += np.eye(5) / exact.PRIOR_SCALE**2
    exact_posterior = stats.multivariate_normal(np.zeros(5), np.linalg.inv(precision))
    factorised = stats.multivariate_normal(np.zeros(5), np.diag(1 / np.diag(precision)))
    draws = factorised.rvs(20_000, random_state=0)
    differences = factorised.logpdf(draws) - exact_posterior.logpdf(draws)
    error = differences.std() / np.sqrt(len(draws))
    gap = exact.least_gap(columns, "mean_field_normal")
    assert abs(differences.mean() - gap) < 4.5 * error


def test_smoke_run_ends_close_to_the_evidence(tmp_path):
    measured = run_smoke("exact", tmp_path, tmp_path / "exact.json")
    records = measured.records
    assert len(records) == 2
    for record in records:
        gap = record["log_evidence"] - record["elbo"] - record["least_gap"]
        # The rounding of float32, and what training leaves.
        assert -1e-3 < gap < 0.1
    assert "polynomial, mean_field_normal" in exact.report(measured)
