"""Weighted conformal scores, for rows whose distribution differs from the held-out."""

import numpy as np
import pytest
from scipy import stats

import tfbbb
from tests.prediction.recalibration.known_models import Known
from tfbbb.base.row_weights import effective_rows, weighted_scores
from tfbbb.prediction.conformal_reach import conformal_reach
from tfbbb.prediction.recalibration import ConformalIntervals
from tfbbb.prediction.row_encoding import RowEncoding, row_values
from tfbbb.prediction.shift_weights import shift_weights

LIKELIHOOD = tfbbb.likelihoods.Normal()
ROWS = 300
NUMBER = np.array([False])


def spread(x):
    """The standard deviation of the noise, which the model does not know."""
    return np.exp(0.7 * x[:, 0])


def fitted(x, generator, weights=None):
    known = Known(stats.norm(), len(x))
    y = spread(x)[:, np.newaxis] * generator.normal(size=(len(x), 1))
    return ConformalIntervals().fitted(LIKELIHOOD, known, y, weights)


def encoded_weights(old, new):
    """Returns the weights of inputs, by the encoding that a version keeps."""
    names = list(old) if isinstance(old, dict) else None
    values, is_text = row_values(old, names)
    encoding = RowEncoding.fit(np.asarray(values), is_text, names)
    return shift_weights(
        np.asarray(encoding(old)), np.asarray(encoding(new)), encoding.is_code
    )


@pytest.fixture(scope="module")
def coverage():
    """Coverage of 90 % intervals in rows whose mean moved by one, of 100 tables."""
    generator = np.random.default_rng(0)
    found = {"true ratio": [], "estimated ratio": [], "none": []}
    nodes, masses = np.polynomial.hermite_e.hermegauss(40)
    for _ in range(100):
        x, new = generator.normal([[[0.0]], [[1.0]]], size=(2, ROWS, 1))
        weights = {
            "true ratio": np.exp(x[:, 0] - 0.5),
            "estimated ratio": shift_weights(x, new, NUMBER),
            "none": None,
        }
        state = generator.bit_generator.state
        for name, of_rows in weights.items():
            generator.bit_generator.state = state
            reach = fitted(x, generator, of_rows).reach(0.9)
            inside = 1.0 - 2.0 * stats.norm.sf(reach / spread(nodes[:, None] + 1.0))
            found[name].append(np.sum(masses * inside) / masses.sum())
    return found


@pytest.mark.parametrize("name", ["true ratio", "estimated ratio"])
def test_weights_cover_the_new_rows(coverage, name):
    # The rank is rounded upwards, among some 110 effective rows.
    error = 4.0 * stats.sem(coverage[name])
    assert 0.9 - error < np.mean(coverage[name]) < 0.9 + 1.0 / 100.0 + error


def test_intervals_without_weights_miss_the_new_rows(coverage):
    assert np.mean(coverage["none"]) < 0.75


def test_equal_weights_give_the_scores_themselves():
    scores = np.random.default_rng(0).exponential(size=(37, 2))
    for weight in (1.0, 0.3):
        found = weighted_scores(scores, np.full(37, weight))
        np.testing.assert_array_equal(found, np.sort(scores, axis=0))


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


def test_like_rows_get_the_weight_one():
    generator = np.random.default_rng(0)
    different = 0
    for _ in range(40):
        old, new = generator.normal(size=(2, 200, 4))
        different += np.any(shift_weights(old, new, np.zeros(4, bool)) != 1.0)
    # One standard error is 16 %, less the loss of a regression that learns nothing.
    assert different <= 6 + 2


def test_weights_of_categories_are_the_ratio_of_their_shares():
    generator = np.random.default_rng(0)
    old = {"kind": generator.choice(["a", "b"], size=2000, p=[0.8, 0.2])}
    new = {"kind": generator.choice(["a", "b"], size=2000, p=[0.4, 0.6])}
    weights = encoded_weights(old, new)
    for kind, ratio in {"a": 0.5, "b": 3.0}.items():
        of_kind = weights[old["kind"] == kind]
        shares = [np.mean(rows["kind"] == kind) for rows in (old, new)]
        error = ratio * sum(np.sqrt((1 - share) / share / 2000) for share in shares)
        np.testing.assert_allclose(of_kind, ratio, atol=4.0 * error)


def test_missing_numbers_and_constant_columns_have_weights():
    generator = np.random.default_rng(0)
    old, new = generator.normal(size=(2, 500, 3))
    old[:, 1] = new[:, 1] = 7.0
    old[generator.uniform(size=500) < 0.2, 2] = np.nan
    new[generator.uniform(size=500) < 0.6, 2] = np.nan
    weights = encoded_weights(old, new)
    missing = np.isnan(old[:, 2])
    assert np.isfinite(weights).all()
    assert np.mean(weights[missing]) == pytest.approx(3.0, rel=0.25)
    assert np.mean(weights[~missing]) == pytest.approx(0.5, rel=0.25)
    old[:, 2] = new[:, 2] = old[:, 0] = new[:, 0] = 1.0
    np.testing.assert_array_equal(encoded_weights(old, new), 1.0)


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


def test_far_rows_are_refused():
    rows = np.random.default_rng(0).normal(size=(200, 3))
    with pytest.raises(ValueError, match=r"too unlike.* 1% are .*200 held-out rows"):
        shift_weights(rows, rows + 4.0, np.zeros(3, bool))


def test_few_new_rows_are_refused():
    with pytest.raises(ValueError, match=r"at least 20 of them.*19 new rows"):
        shift_weights(np.zeros((100, 1)), np.zeros((19, 1)), NUMBER)
