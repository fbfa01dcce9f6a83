"""Forecasts of time series know no point after their origin, and are scored alike."""

import numpy as np
import pytest

from tests.benchmarks.programs import load, run_smoke

series = load("series")
series_models = load("series_models")
RANDOM = np.random.default_rng(0)


def test_smoke_run_scores_networks_beside_the_naive_forecast(tmp_path):
    smoke = run_smoke("series", tmp_path, tmp_path / "series.json")
    methods = {record["method"] for record in smoke.records}
    assert methods == {*series.OURS, series.NAIVE}
    for record in smoke.records:
        assert all(np.isfinite(record[figure]) for figure in series.FIGURES)
    assert len(series.compare(smoke)) == 2 * 3 + 2 * 3
    assert "of 1 series" in series.report(smoke)


@pytest.mark.parametrize("points", [84, 119, 1000])
def test_forecasts_know_at_least_the_points_of_their_fit(points):
    origins, fits = series.find_origins(points)
    assert origins[-1] == points - series.HORIZON
    assert len(origins) % series.REFITTED == 0
    assert np.all(fits <= origins)
    assert np.all(origins - fits < series.REFITTED)


def test_the_naive_forecast_repeats_the_last_season():
    values = RANDOM.normal(size=60)
    origins, fits = series.find_origins(60)
    found = series.forecast_naively(values, 4, origins, fits)["quantiles"]
    middle = found[[49, 50]].mean(axis=0)
    for row, known in enumerate(origins):
        np.testing.assert_allclose(middle[row, :4], values[known - 4 : known])
        np.testing.assert_allclose(middle[row, 8:], values[known - 4 : known])


def test_crps_is_that_of_a_normal_distribution():
    quantiles = series.ndtri(series.LEVELS)[:, np.newaxis, np.newaxis]
    # The score of N(0, 1) at its mean is (sqrt(2) - 1) / sqrt(pi).
    found = series.mean_crps(quantiles, np.zeros((1, 1)))
    assert found[0] == pytest.approx((2**0.5 - 1) / np.pi**0.5, abs=0.005)


@pytest.mark.parametrize("season", [4, 12])
def test_columns_do_not_change_with_the_level(season):
    table = series_models.Table.of(season)
    windows = RANDOM.normal(size=(3, table.window))
    moved = windows + 7.0
    np.testing.assert_allclose(moved @ table.columns, windows @ table.columns)
    np.testing.assert_allclose(moved @ table.expected, windows @ table.expected)


@pytest.mark.parametrize("season", [4, 12])
def test_a_season_that_repeats_with_a_trend_is_expected(season):
    table = series_models.Table.of(season)
    steps = np.arange(5 * season)
    values = RANDOM.normal(size=season)[steps % season] + 0.3 * steps
    windows = table.windows(values)
    np.testing.assert_allclose(windows[:-1] @ table.expected, np.diff(values))
    # The lags and the last year's difference are what was not expected.
    surprises = windows @ table.columns[:, : series_models.LAGS + 1]
    np.testing.assert_allclose(surprises, 0.0, atol=1e-9)


def test_windows_end_with_each_value():
    table = series_models.Table.of(4)
    values = RANDOM.normal(size=30)
    windows = table.windows(values)
    assert windows.shape == (30, table.window)
    np.testing.assert_array_equal(windows[:, -1], values)
