"""Conformal scores of weighted rows."""

import numpy as np
import pytest
from scipy import stats

import tfbbb
from tests.prediction.recalibration.known_models import Known
from tfbbb.base.row_weights import effective_rows, weighted_scores
from tfbbb.prediction.conformal_reach import conformal_reach
from tfbbb.prediction.recalibration import ConformalIntervals

LIKELIHOOD = tfbbb.likelihoods.Normal()
ROWS = 300


def spread(x):
    """The standard deviation of the noise, which the model does not know."""
    return np.exp(0.7 * x[:, 0])


def fitted(x, generator, weights=None):
    known = Known(stats.norm(), len(x))
    y = spread(x)[:, np.newaxis] * generator.normal(size=(len(x), 1))
    return ConformalIntervals().fitted(LIKELIHOOD, known, y, weights)


@pytest.fixture(scope="module")
def coverage():
    """Coverage of 90 % intervals in rows whose mean moved by one, of 100 tables."""
    generator = np.random.default_rng(0)
    found = {"ratio": [], "none": []}
    nodes, masses = np.polynomial.hermite_e.hermegauss(40)
    for _ in range(100):
        x = generator.normal(size=(ROWS, 1))
        weights = {"ratio": np.exp(x[:, 0] - 0.5), "none": None}
        state = generator.bit_generator.state
        for name, of_rows in weights.items():
            generator.bit_generator.state = state
            reach = fitted(x, generator, of_rows).reach(0.9)
            inside = 1.0 - 2.0 * stats.norm.sf(reach / spread(nodes[:, None] + 1.0))
            found[name].append(np.sum(masses * inside) / masses.sum())
    return found


def test_weights_of_the_ratio_of_densities_cover_the_new_rows(coverage):
    # The rank is rounded upwards, among some 110 effective rows.
    error = 4.0 * stats.sem(coverage["ratio"])
    assert 0.9 - error < np.mean(coverage["ratio"]) < 0.9 + 1.0 / 100.0 + error


def test_intervals_without_weights_miss_the_new_rows(coverage):
    assert np.mean(coverage["none"]) < 0.75


def test_scores_are_quantiles_by_weight_with_the_new_row_at_infinity():
    generator = np.random.default_rng(0)
    scores, weights = generator.exponential(size=(2, 200))
    found = weighted_scores(scores[:, None], weights)
    infinite = np.square(weights).sum() / weights.sum()
    number = effective_rows(weights)
    assert number == int(weights.sum() ** 2 / np.square(weights).sum()) == len(found)
    for level in (0.3, 0.8, 0.9):
        share = np.ceil((number + 1) * level) / (number + 1)
        below = [weights[scores <= s].sum() for s in np.sort(scores)]
        enough = np.array(below) >= share * (weights.sum() + infinite)
        brute_force = np.sort(scores)[np.argmax(enough)]
        assert conformal_reach(found.T, level) == brute_force


def test_groups_share_the_weights_of_their_rows():
    labels = np.repeat([0.0, 1.0], [60, 40])
    y = np.arange(100.0)[:, None]
    known = Known(stats.norm(), 100)
    # Twenty rows of the first group count, and ten of the second.
    weights = np.tile([1.0, 0.0, 0.0], 34)[:100]
    weights[60:] = np.tile([1.0, 0.0, 0.0, 0.0], 10)
    found = ConformalIntervals().fitted(LIKELIHOOD, known, y, weights, 0, labels)
    assert found.num_rows == 30
    assert found.group_values == (0.0,)
    np.testing.assert_allclose(found.group_scores[0][0], np.arange(0.0, 60.0, 3.0))
