import numpy as np
import pytest
from scipy import integrate, stats

from tests.scores.metrics.known_predictions import (
    Mixture,
    normals,
    values,
)
from tfbbb.scores.metrics import crps


def of_normal(standardized):
    """The closed form of Gneiting and Raftery (2007), in standard deviations."""
    return (
        standardized * (2.0 * stats.norm.cdf(standardized) - 1.0)
        + 2.0 * stats.norm.pdf(standardized)
        - 1.0 / np.sqrt(np.pi)
    )


def of_mixture(locations, scales, y):
    """The closed form of Grimit et al. (2006) for uniform mixtures, [S, ...]."""

    def distance(mean, scale):
        z = mean / scale
        return mean * (2.0 * stats.norm.cdf(z) - 1.0) + 2.0 * scale * stats.norm.pdf(z)

    to_target = distance(y - locations, scales).mean(axis=0)
    differences = locations[:, None] - locations[None]
    spreads = np.hypot(scales[:, None], scales[None])
    return to_target - 0.5 * distance(differences, spreads).mean(axis=(0, 1))


@pytest.mark.parametrize("standardized", [-30.0, -5.0, -1.0, 0.0, 0.3, 2.0, 8.0])
def test_crps_of_a_normal_equals_the_closed_form(standardized):
    prediction = Mixture(stats.norm(np.full((1, 1, 1), 100.0), 3.0))
    np.testing.assert_allclose(
        crps(prediction, [100.0 + 3.0 * standardized]),
        3.0 * of_normal(standardized),
        # The part of the integral beyond 4.5 standard deviations is missing.
        atol=3.0 * 2e-6,
    )


def test_crps_of_a_mixture_of_normals_equals_the_closed_form():
    prediction = normals(rows=200, targets=2)
    locations, scales = prediction.components.args
    y = prediction.mean + np.random.default_rng(1).normal(0.0, 2.0, size=(200, 2))
    errors = crps(prediction, y, per_row=True) - of_mixture(locations, scales, y)
    relative = np.abs(errors) / prediction.stddev
    assert relative.mean() < 3e-5
    assert relative.max() < 5e-4


def test_crps_of_heavy_tails_equals_the_integral():
    prediction = Mixture(stats.t(3.0, loc=np.ones((1, 1, 1)), scale=2.0))
    cdf = prediction.components.cdf
    left = integrate.quad(lambda z: cdf(z).item() ** 2, -np.inf, 2.5)[0]
    right = integrate.quad(lambda z: (1.0 - cdf(z).item()) ** 2, 2.5, np.inf)[0]
    np.testing.assert_allclose(crps(prediction, [2.5]), left + right, rtol=1e-3)


@pytest.mark.parametrize("rate", [0.01, 3.0, 80.0])
def test_crps_of_counts_equals_the_sum_over_integers(rate):
    rates = rate * np.array([0.8, 1.2])[:, None, None] * np.ones((1, 3, 1))
    prediction = Mixture(stats.poisson(rates), discrete=True)
    y = np.array([[0.0], [np.floor(rate)], [200.0]])
    grid = np.arange(400)
    below = stats.poisson.cdf(grid, rates).mean(axis=0)
    expected = np.square(below - (grid >= y)).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        crps(prediction, y, per_row=True), expected, rtol=1e-4, atol=1e-5
    )


def test_crps_is_proper():
    prediction = normals(rows=150, draws=2)
    y = values(prediction)
    locations, scales = prediction.components.args
    own = crps(prediction, y, per_row=True)
    for other in (
        Mixture(stats.norm(locations + 1.0, scales)),
        Mixture(stats.norm(locations, 3.0 * scales)),
        Mixture(stats.norm(0.5 * locations, scales)),
    ):
        difference = crps(other, y, per_row=True) - own
        assert difference.mean() > 4.0 * difference.std() / np.sqrt(150)
