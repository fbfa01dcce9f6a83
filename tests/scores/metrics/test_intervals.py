import numpy as np
import pytest
from scipy import stats

from tests.scores.metrics.known_predictions import (
    Mixture,
    normals,
    values,
)
from tfbbb.scores.metrics import interval_coverage, interval_width


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_intervals_of_a_calibrated_prediction_cover_their_level(level):
    prediction = normals(rows=4000)
    covered = interval_coverage(prediction, values(prediction), level)
    assert abs(covered - level) < 4.0 * np.sqrt(level * (1.0 - level) / 4000)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_coverage_equals_that_of_the_quantiles(level):
    prediction = normals(rows=300, targets=2)
    y = prediction.mean + np.random.default_rng(2).normal(size=(300, 2))
    bounds = prediction.quantile([0.5 - level / 2, 0.5 + level / 2])
    inside = (bounds[:, 0] <= y) & (y <= bounds[:, 1])
    assert (interval_coverage(prediction, y, level, per_row=True) == inside).all()
    assert interval_coverage(prediction, y, level) == pytest.approx(inside.mean())


def test_coverage_of_counts_equals_that_of_the_quantiles():
    rates = np.linspace(0.1, 20.0, 300)[None, :, None]
    prediction = Mixture(stats.poisson(rates), discrete=True)
    y = values(prediction).astype(float)
    lower, upper = np.moveaxis(prediction.quantile([0.05, 0.95]), 1, 0)
    inside = (lower <= y) & (y <= upper)
    assert (interval_coverage(prediction, y, per_row=True) == inside).all()
    assert inside.mean() >= 0.9


def test_width_of_a_normal_equals_the_closed_form():
    scales = np.array([[[1.0], [4.0]]])
    prediction = Mixture(stats.norm(np.zeros((1, 2, 1)), scales))
    expected = 2.0 * stats.norm.ppf(0.9) * scales[0]
    np.testing.assert_allclose(
        interval_width(prediction, 0.8, per_row=True), expected, rtol=1e-8
    )
    assert interval_width(prediction, 0.8) == pytest.approx(expected.mean())


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 90, float("nan"), "0.9"])
def test_levels_must_be_between_0_and_1(level):
    prediction = normals(rows=3)
    with pytest.raises(ValueError, match="Received: level="):
        interval_coverage(prediction, prediction.mean, level)
    with pytest.raises(ValueError, match="Received: level="):
        interval_width(prediction, level)
