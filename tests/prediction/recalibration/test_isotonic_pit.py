import functools

import numpy as np
import pytest
from scipy import stats

import tfbbb
from tests.prediction.recalibration.known_models import (
    DRAWS,
    FRESH,
    DrawnModel,
    X,
    spread_out,
)
from tfbbb.bayes.likelihoods import Normal
from tfbbb.prediction.recalibration import IsotonicPIT

SKEWED = stats.gumbel_r(0.3, 1.2)
# Two samples of 2000 that differ by more are of the same distribution once in a
# thousand times (Kolmogorov and Smirnov).
LARGEST_DISTANCE = 1.95 * np.sqrt(2 / 2000)
BENT = IsotonicPIT([0.05, 0.3, 0.6, 0.99], [0.1, 0.2, 0.7, 0.9])


@functools.cache
def plain():
    """A model that no test recalibrates."""
    return DrawnModel()


def skewed(x, seed):
    prediction = plain().predictive(x, num_samples=DRAWS)
    noise = SKEWED.rvs((len(x), 1), random_state=seed)
    return prediction.mean + prediction.stddev * noise


def panels(prediction, recalibration):
    """Returns points and weights of integrals over y of one row's density.

    Between its jumps, which are at the knots, by Gauss's rule.
    """
    levels = np.concatenate(
        [stats.norm.cdf(np.arange(-6.0, 6.01, 0.5)), recalibration.levels]
    )
    ends = np.sort(prediction.quantile(levels)[0, :, 0])
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = 0.5 * np.diff(ends)[:, None]
    points = ends[:-1, None] + half * (nodes + 1.0)
    return points.ravel(), (half * weights).ravel()


def repeated(model, x, number):
    """Returns the prediction of one row, as many times."""
    rows = np.repeat(x[:1], number, axis=0)
    return model.predictive(rows, num_samples=DRAWS, method="local")


@pytest.fixture(scope="module")
def bent():
    model = DrawnModel()
    model.recalibration = BENT
    return model


def test_fresh_rows_have_a_uniform_probability_integral_transform():
    model = DrawnModel()
    y = skewed(FRESH, seed=1)
    before = tfbbb.metrics.pit_values(model.predictive(FRESH, num_samples=DRAWS), y)
    assert stats.kstest(before[:, 0], "uniform").statistic > 4.0 * LARGEST_DISTANCE
    model.recalibrate(X, skewed(X, seed=0), "isotonic_pit", num_samples=DRAWS)
    prediction = model.predictive(FRESH, num_samples=DRAWS)
    after = tfbbb.metrics.pit_values(prediction, y)
    assert stats.kstest(after[:, 0], "uniform").statistic < LARGEST_DISTANCE
    raw = plain().predictive(FRESH, num_samples=DRAWS)
    gain = np.mean(prediction.log_prob(y) - raw.log_prob(y))
    # What the form of the density is worth, as far as 13 knots can tell it.
    second_moment = SKEWED.var() + SKEWED.mean() ** 2
    worth = 0.5 * np.log(2.0 * np.pi) + 0.5 * second_moment - SKEWED.entropy()
    assert gain == pytest.approx(worth, rel=0.1)


def test_quantiles_invert_the_distribution_function(bent):
    prediction = bent.predictive(X[:5], num_samples=DRAWS)
    levels = [1e-4, 0.01, 0.1, 0.35, 0.9, 0.999]
    found = prediction.quantile(levels)
    for index, level in enumerate(levels):
        np.testing.assert_allclose(prediction.cdf(found[:, index]), level, rtol=1e-7)
    assert np.all(np.diff(found, axis=1) > 0.0)


def test_the_map_goes_through_its_knots(bent):
    raw = plain().predictive(X[:5], num_samples=DRAWS)
    prediction = bent.predictive(X[:5], num_samples=DRAWS)
    expected = raw.quantile(list(BENT.pit))
    np.testing.assert_allclose(prediction.quantile(list(BENT.levels)), expected)


def test_the_density_integrates_to_one_and_has_the_moments(bent):
    one = bent.predictive(X[:1], num_samples=DRAWS, method="local")
    y, weights = panels(one, BENT)
    prediction = repeated(bent, X, len(y))
    density = weights * np.exp(prediction.log_prob(y))
    assert density.sum() == pytest.approx(1.0, abs=1e-6)
    mean = (density * y).sum()
    variance = (density * (y - mean) ** 2).sum()
    deviation = float(one.stddev[0, 0])
    assert one.mean[0, 0] == pytest.approx(mean, abs=2e-4 * deviation)
    assert one.variance[0, 0] == pytest.approx(variance, rel=3e-4)


def test_draws_follow_the_distribution(bent):
    prediction = bent.predictive(X[:3], num_samples=DRAWS)
    values = prediction.sample(2000)
    assert values.shape == (2000, 3, 1)
    error = prediction.stddev / np.sqrt(2000)
    assert np.all(np.abs(values.mean(axis=0) - prediction.mean) < 4.0 * error)
    p = repeated(bent, X, 2000).cdf(values[:, 0])[:, 0]
    assert stats.kstest(p, "uniform").statistic < 1.95 / np.sqrt(2000)
    other = prediction.sample(2000, seed=5)
    assert not np.array_equal(values, other)


def test_rows_with_the_same_targets_share_a_knot():
    model = DrawnModel(spread=1e-6)
    prediction = model.predictive(X[:100])
    y = np.where(
        np.arange(100)[:, None] < 60, prediction.mean, prediction.quantile(0.9)
    )
    y[:20] = prediction.quantile(0.05)[:20]
    found = model.recalibrate(X[:100], y, "isotonic_pit")
    assert np.all(np.diff(found.pit) > 0.0)
    assert found.levels == pytest.approx([0.1, 0.4, 0.8])


def test_targets_far_outside_are_refused():
    model = DrawnModel(1, Normal(scale=1.0))
    y = spread_out(model, X[:100], 50.0)
    with pytest.raises(ValueError, match=r"lie so far out.*Received: F\(y\) from"):
        model.recalibrate(X[:100], y, "isotonic_pit")
