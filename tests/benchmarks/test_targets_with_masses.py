import numpy as np
import pytest
from scipy import stats

from tests.benchmarks.programs import load

masses = load("targets_with_masses")


def test_the_score_of_draws_is_that_of_their_distribution():
    generator = np.random.default_rng(0)
    draws = generator.normal(size=(4000, 200))
    targets = generator.normal(size=4000)
    z = targets
    exact = z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - np.pi**-0.5
    found = masses.crps(draws, targets)
    error = np.std(found - exact) / np.sqrt(4000)
    assert np.mean(found - exact) == pytest.approx(0.0, abs=4 * error)


@pytest.mark.parametrize("name", list(masses.SETS))
def test_draws_of_the_truth_score_as_well_as_their_spread(name):
    x, y, truth = masses.rows_of(name, seed=1)
    assert len(x) == len(y) == len(truth)
    scores = masses.crps(truth, y)
    # The score of a calibrated forecast is half the mean distance of two draws.
    half = 0.5 * np.abs(truth[:, ::2] - truth[:, 1::2]).mean(axis=1)
    error = np.std(scores - half) / np.sqrt(len(y))
    assert np.mean(scores - half) == pytest.approx(0.0, abs=4 * error)
