import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy import stats

from tests.scores.plots.normal_prediction import UniformPrediction
from tfbbb.base.sampling_band import sampling_band
from tfbbb.scores.plots import calibration_curve, pit_histogram
from tfbbb.scores.plots.style import BLUE, VERMILION


@pytest.fixture
def values():
    return np.random.default_rng(0).uniform(size=60)


def test_the_band_is_the_narrowest_with_its_confidence():
    lower, upper = sampling_band(30, 0.3, 0.9)
    counts = stats.binom(30, 0.3)
    assert counts.cdf(upper) - counts.cdf(lower - 1) >= 0.9
    assert counts.cdf(lower) > 0.05
    assert counts.sf(upper - 1) > 0.05


def test_the_curve_counts_the_rows_within_each_central_interval(values):
    axes = calibration_curve(UniformPrediction(60), values, axes=Figure().subplots())
    _, curve = axes.lines
    levels, shares = curve.get_data()
    expected = [
        100 * np.mean((values >= 0.5 - p / 2) & (values <= 0.5 + p / 2))
        for p in levels / 100
    ]
    np.testing.assert_allclose(shares, expected)
    assert shares[-1] == 100.0


def test_the_band_of_the_curve_is_binomial(values):
    axes = calibration_curve(
        UniformPrediction(60), values, confidence=0.9, axes=Figure().subplots()
    )
    vertices = axes.collections[0].get_paths()[0].vertices
    half = np.sort(vertices[vertices[:, 0] == 50.0][:, 1])[[0, -1]]
    np.testing.assert_allclose(
        half, 100 * stats.binom.ppf([0.05, 0.95], 60, 0.5) / 60, rtol=1e-12
    )


@pytest.mark.parametrize("rows", [20, 1000])
def test_the_band_of_the_histogram_has_its_confidence(rows):
    options = {"bins": 8, "confidence": 0.8, "axes": Figure().subplots()}
    values = np.linspace(0.0, 1.0, rows)
    axes = pit_histogram(UniformPrediction(rows), values, **options)
    lower, upper = axes.patches[0].get_bbox().intervaly
    runs = 20_000
    counts = np.random.default_rng(0).multinomial(rows, [1 / 8] * 8, size=runs)
    inside = ((counts >= lower) & (counts <= upper)).all(axis=1).mean()
    # Bonferroni's bound, but for four standard errors.
    assert inside > 0.8 - 4 * np.sqrt(0.8 * 0.2 / runs)


def test_bars_beyond_the_band_have_another_colour():
    values = np.concatenate([np.full(80, 0.99), np.linspace(0.01, 0.89, 20)])
    axes = pit_histogram(
        UniformPrediction(100), values, bins=10, axes=Figure().subplots()
    )
    bars = axes.patches[1:]
    assert [bar.get_height() for bar in bars] == [*np.histogram(values, 10, (0, 1))[0]]
    colors = [to_hex(bar.get_facecolor()).upper() for bar in bars]
    assert colors[-1] == VERMILION
    assert BLUE in colors
