"""Weighted conformal scores, for rows whose distribution differs from the held-out."""

import keras
import numpy as np
import pytest
from scipy import stats

import tfbbb
from tests.prediction.recalibration.known_models import (
    DRAWS,
    FRESH,
    Known,
    X,
    network,
)
from tfbbb.base.row_weights import effective_rows, weighted_scores
from tfbbb.prediction.conformal_reach import conformal_reach
from tfbbb.prediction.recalibration import ConformalIntervals, VarianceScaling
from tfbbb.prediction.shift_weights import shift_weights, weights_for

LIKELIHOOD = tfbbb.likelihoods.Normal()
ROWS = 300
NUMBER = np.array([False])


def spread(x):
    """The standard deviation of the noise, which the model does not know."""
    return np.exp(0.7 * x[:, 0])


def fitted(x, generator, weights=None):
    known = Known(stats.norm(), len(x))
    y = spread(x)[:, np.newaxis] * generator.normal(size=(len(x), 1))
    return ConformalIntervals().fitted_by(LIKELIHOOD, known, y, weights=weights)


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


def test_rows_of_weight_zero_do_not_count():
    scores = np.arange(40.0)[:, None]
    found = weighted_scores(scores, np.repeat([1.0, 0.0], 20))
    np.testing.assert_array_equal(found[:, 0], np.arange(20.0))


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
    weights = weights_for(old, new)
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
    weights = weights_for(old, new)
    missing = np.isnan(old[:, 2])
    assert np.isfinite(weights).all()
    assert np.mean(weights[missing]) == pytest.approx(3.0, rel=0.25)
    assert np.mean(weights[~missing]) == pytest.approx(0.5, rel=0.25)
    old[:, 2] = new[:, 2] = old[:, 0] = new[:, 0] = 1.0
    np.testing.assert_array_equal(weights_for(old, new), 1.0)


def test_recalibrate_covers_rows_of_another_distribution():
    def targets(x, seed):
        noise = np.random.default_rng(seed).normal(size=(len(x), 1))
        prediction = network().predictive(x, num_samples=DRAWS)
        return prediction.mean + spread(x)[:, None] * noise * prediction.stddev

    moved = FRESH + np.eye(1, 3, dtype="float32")
    truth = targets(moved, 1)
    covered = {}
    for name, new_rows in {"none": None, "moved": moved[:1000]}.items():
        model = network()
        found = model.recalibrate(
            X,
            targets(X, 0),
            ConformalIntervals(density=VarianceScaling()),
            new_rows=new_rows,
            num_samples=DRAWS,
        )
        lower, upper = model.predictive(moved, num_samples=DRAWS).interval(0.9)
        covered[name] = np.mean((lower <= truth) & (truth <= upper))
    assert found.num_rows < 1500
    error = np.sqrt(0.09 / found.num_rows + 0.09 / 2000)
    assert covered["moved"] == pytest.approx(0.9, abs=4.0 * error)
    assert covered["none"] < 0.8


def test_new_rows_like_the_held_out_rows_change_nothing():
    y = network().predictive(X[:200]).sample(1)[0]
    model = network()
    before = model.recalibrate(X[:200], y, "conformal_intervals")
    assert model.recalibrate(X[:200], y, before, new_rows=FRESH[:200]) == before


def test_auto_recalibrates_the_density_and_the_intervals():
    y = network().predictive(X[:200]).sample(1)[0]
    found = network().recalibrate(X[:200], y, new_rows=X[:100] + 0.5)
    assert isinstance(found, ConformalIntervals)
    assert isinstance(found.density, VarianceScaling)


def test_groups_share_the_weights_of_their_rows():
    labels = np.repeat([0.0, 1.0], [60, 40])
    y = np.arange(100.0)[:, None]
    known = Known(stats.norm(), 100)
    # Twenty rows of the first group count, and ten of the second.
    weights = np.tile([1.0, 0.0, 0.0], 34)[:100]
    weights[60:] = np.tile([1.0, 0.0, 0.0, 0.0], 10)
    found = ConformalIntervals().fitted_by(LIKELIHOOD, known, y, 0, labels, weights)
    assert found.num_rows == 30
    assert found.group_values == (0.0,)
    np.testing.assert_allclose(found.group_scores[0][0], np.arange(0.0, 60.0, 3.0))


def test_weighted_intervals_are_saved_and_exported(tmp_path):
    model = network()
    y = model.predictive(X[:300]).sample(1)[0] * 2.0
    found = model.recalibrate(X[:300], y, new_rows=FRESH[:300] + 0.7)
    assert found.num_rows < 250
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.recalibration == found
    model.export_predictive(tmp_path / "1")
    loaded = tfbbb.load(tmp_path / "1").predictive(FRESH[:5])
    expected = model.predictive(FRESH[:5]).interval(0.9)
    np.testing.assert_allclose(loaded.interval(0.9), expected, rtol=1e-4)


def test_far_rows_are_refused_and_the_recalibration_stays():
    y = network().predictive(X[:200]).sample(1)[0]
    model = network()
    before = model.recalibrate(X[:200], y, "conformal_intervals")
    with pytest.raises(ValueError, match=r"too unlike.* 1% are .*200 held-out rows"):
        model.recalibrate(X[:200], y, before, new_rows=X[:200] + 4.0)
    assert model.recalibration == before


def test_few_new_rows_are_refused():
    with pytest.raises(ValueError, match=r"at least 20 of them.*19 new rows"):
        weights_for(X[:100], FRESH[:19])


def test_many_columns_are_refused():
    with pytest.raises(ValueError, match=r"at most 1250 columns.*1251 columns"):
        weights_for(np.zeros((30, 1251)), np.zeros((30, 1251)))


def test_a_factor_takes_no_new_rows():
    with pytest.raises(ValueError, match="Only intervals and sets adapt to new rows"):
        network().recalibrate(X[:50], X[:50, :1], "variance_scaling", new_rows=X)
