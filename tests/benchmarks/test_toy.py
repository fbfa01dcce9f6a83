import numpy as np
import pytest
from scipy import stats

from tests.benchmarks.programs import load, run_smoke

toy = load("toy")


def test_distance_of_normals_is_that_of_their_parameters():
    # W_2^2 = (difference of means)^2 + (difference of deviations)^2; the quantiles
    # leave out the tails beyond 1/128.
    first = stats.norm(1.0, 2.0).ppf(toy.LEVELS)[np.newaxis]
    second = stats.norm(4.0, 2.5).ppf(toy.LEVELS)[np.newaxis]
    found = toy.wasserstein(first, second)
    assert found == pytest.approx(np.hypot(3.0, 0.5), rel=0.01)
    np.testing.assert_array_equal(toy.wasserstein(first, first), 0.0)


def test_quantiles_of_functions_and_noise_are_those_of_the_sum():
    functions = np.random.default_rng(0).normal(0.0, 3.0, size=(20_000, toy.GRID))
    found = toy.mixture_quantiles(functions, 4.0)
    inner = slice(5, -5)
    expected = stats.norm(0.0, 5.0).ppf(toy.LEVELS)[inner]
    # Quantiles near the 8 % level of 20 000 draws have errors of some 0.06.
    assert np.abs(found[:, inner] - expected).max() < 5 * 0.06


def test_noise_of_the_waves_is_that_of_their_targets():
    x = np.full(20_000, 0.2)
    noise = np.random.default_rng(0).normal(size=len(x))
    # The slope in e at 0.2: 1 + 0.6 pi cos(0.4 pi) + 1.2 pi cos(0.8 pi).
    slope = 1 + 0.6 * np.pi * np.cos(0.4 * np.pi) + 1.2 * np.pi * np.cos(0.8 * np.pi)
    assert toy.waves(x, noise).std() == pytest.approx(0.02 * abs(slope), rel=0.05)


@pytest.mark.slow
def test_smoke_run_finds_the_cubic(tmp_path):
    measured = run_smoke("toy", tmp_path, tmp_path / "toy.json")
    (reference,) = measured.select(method=toy.REFERENCE)
    assert reference["divergences"] == 0
    x = toy.curve("cubic").grid
    inside = np.abs(x) < 3.5
    mean = np.mean(reference["quantiles"], axis=1)
    # Two standard deviations of the noise.
    assert np.abs(mean - x**3)[inside].mean() < 6.0
    (trained,) = measured.select(method="mean field")
    distances = toy.wasserstein(trained["quantiles"], reference["quantiles"])
    assert distances[inside].mean() < 12.0
    assert "2-Wasserstein" in toy.report(measured)
