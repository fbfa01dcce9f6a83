import json

import numpy as np
import pytest

from tests.prediction.recalibration.known_models import (
    DRAWS,
    FRESH,
    X,
    drawn,
    network,
    spread_out,
)
from tfbbb.prediction.recalibration import (
    ConformalIntervals,
    IsotonicPIT,
    Temperature,
    VarianceScaling,
    choose,
)
from tfbbb.prediction.recalibration.cross_fitted import CrossFitted, HeldOut
from tfbbb.prediction.recalibration.from_outputs import apply
from tfbbb.scores.metrics import calibration_error, negative_log_likelihood

ROWS = 400


@pytest.fixture(scope="module")
def numbers():
    """A model, its prediction, and targets that spread 2.5 times as far."""
    model = network()
    y = spread_out(model, X[:ROWS], 2.5)
    return model, model.predictive(X[:ROWS], num_samples=DRAWS), y


@pytest.fixture(scope="module")
def classes():
    """A model, its prediction, and labels of which it is too uncertain."""
    model = network(3, "categorical", spread=1.0)
    model.recalibration = Temperature(0.2)
    y = drawn(model, X[:ROWS])
    model.recalibration = None
    return model, model.predictive(X[:ROWS], num_samples=DRAWS), y


def test_a_recalibration_that_helps_is_kept(numbers):
    model, prediction, y = numbers
    choice = choose(model.likelihood, prediction, y)
    assert choice.recalibration.density.factors[0] == pytest.approx(2.5, rel=0.2)
    assert choice.report["chosen"] == "variance_scaling, conformal_intervals"
    assert "raises the log-likelihood" in choice.report["reason"]
    names = [tried["name"] for tried in choice.report["tried"]]
    assert names[:2] == ["none", "variance_scaling"]
    assert json.loads(json.dumps(choice.report)) == choice.report
    before, after = (choice.report["tried"][i]["log_likelihood"] for i in (0, 1))
    # Rows that the factor was not fitted to, and new rows.
    fresh = spread_out(model, FRESH, 2.5, seed=1)
    of_fresh = model.predictive(FRESH, num_samples=DRAWS)
    better = apply(VarianceScaling(2.5), model.likelihood, of_fresh)
    gains = better.log_prob(fresh) - of_fresh.log_prob(fresh)
    error = gains.std() * np.sqrt(1 / ROWS + 1 / len(fresh))
    assert after - before == pytest.approx(gains.mean(), abs=4 * error)


def test_the_density_of_a_calibrated_model_is_kept_as_it_is():
    model = network()
    y = drawn(model, X[:ROWS])
    prediction = model.predictive(X[:ROWS], num_samples=DRAWS)
    choice = choose(model.likelihood, prediction, y)
    assert "variance_scaling" not in choice.report["chosen"]
    assert "variance_scaling does not raise the log-lik" in choice.report["reason"]


def test_rows_that_belong_together_are_left_out_together(numbers):
    model, prediction, y = numbers
    fours = np.random.default_rng(0).permutation(ROWS) // 4
    rows = HeldOut(model.likelihood, prediction, y, together=fours)
    crossed = CrossFitted(VarianceScaling(), rows)
    parts = [set(fours[rows]) for rows, _ in crossed._parts]
    assert len(set.union(*parts)) == sum(map(len, parts)) == ROWS // 4


def test_temperature_and_sets_are_chosen_for_classes(classes):
    model, prediction, y = classes
    choice = choose(model.likelihood, prediction, y)
    assert choice.report["chosen"].startswith("temperature")
    assert choice.recalibration.density.temperature == pytest.approx(0.2, rel=0.3)
    covered = choice.prediction.prediction_set(0.9)[np.arange(ROWS), y]
    assert covered.mean() > 0.9 - 4 * np.sqrt(0.09 / ROWS)


def test_no_row_is_scored_by_a_recalibration_that_has_seen_it(numbers):
    model, prediction, y = numbers
    found = CrossFitted(VarianceScaling(), HeldOut(model.likelihood, prediction, y))
    order = np.random.default_rng(0).permutation(ROWS)
    rows, others = order[: ROWS // 5], order[ROWS // 5 :]
    fitted = VarianceScaling().fitted(
        model.likelihood, prediction.take(others), y[others]
    )
    expected = apply(fitted, model.likelihood, prediction.take(rows))
    np.testing.assert_allclose(found.log_prob(y)[rows], expected.log_prob(y[rows]))
    np.testing.assert_allclose(found.cdf(y)[rows], expected.cdf(y[rows]))
    for mine, theirs in (
        (found.interval(0.9), expected.interval(0.9)),
        ((found.quantile(0.2), found.mean), (expected.quantile(0.2), expected.mean)),
        ((found.stddev, found.mean), (expected.stddev, expected.mean)),
    ):
        np.testing.assert_allclose(mine[0][rows], theirs[0])
        np.testing.assert_allclose(mine[1][rows], theirs[1])
    assert len(found) == ROWS
    assert negative_log_likelihood(found, y) == pytest.approx(-found.log_prob(y).mean())
    assert calibration_error(found, y) < calibration_error(prediction, y)


def test_a_row_of_its_own_group_is_scored_by_its_group(numbers):
    model, prediction, y = numbers
    labels = np.where(np.arange(ROWS) % 2, "near", "far")
    y = np.where(labels[:, None] == "far", 4.0, 1.0) * (y - prediction.mean)
    y += prediction.mean
    choice = choose(model.likelihood, prediction, y, by="place", labels=labels)
    assert choice.report["chosen"].endswith("conformal_intervals")
    assert "hold in each group" in choice.report["reason"]
    for group in choice.report["groups"]:
        assert (group["num_rows"], group["own"]) == (200, True)
        # Sampling error of 200 scored and 160 fitted rows.
        assert abs(group["coverage_90"] - 0.9) < 4 * np.sqrt(0.09 * 2 / 160)


@pytest.mark.parametrize(
    ("method", "rows", "reason"),
    [
        ("auto", 20, "variance_scaling needs 25 held-out rows"),
        (IsotonicPIT(), 60, "isotonic_pit needs 63 held-out rows"),
        (ConformalIntervals(), 24, "conformal_intervals needs 25 held-out rows"),
    ],
)
def test_too_few_rows_leave_the_model_as_it_is(numbers, method, rows, reason):
    model, prediction, y = numbers
    few = prediction.take(np.arange(rows))
    choice = choose(model.likelihood, few, y[:rows], method)
    assert choice.recalibration is None
    assert choice.prediction is few
    assert choice.report["chosen"] == "none"
    assert reason in choice.report["reason"]


def test_some_rows_of_a_prediction_have_their_answers():
    model = network(2)
    whole = model.predictive(X[:50], num_samples=DRAWS)
    # Rows whose outputs come block by block.
    blocks = model.predictive(X[:50], num_samples=DRAWS, max_memory_mb=0.01)
    rows = np.array([3, 8, 17, 40])
    y = np.random.default_rng(0).normal(size=(50, 2))
    for prediction in (whole, blocks):
        some = prediction.take(rows)
        assert len(some) == 4
        np.testing.assert_array_equal(some.variance, prediction.variance[rows])
        np.testing.assert_allclose(some.log_prob(y[rows]), prediction.log_prob(y)[rows])
        again = some.take(np.array([0, 3]))
        np.testing.assert_allclose(again.cdf(y[[3, 40]]), prediction.cdf(y)[[3, 40]])
    np.testing.assert_allclose(
        whole.take(rows).joint_sample(3), whole.joint_sample(3)[:, rows]
    )


def test_intervals_that_would_be_much_longer_are_left(numbers, monkeypatch):
    """No score is half as large, so with this limit they count as much longer."""
    model, prediction, y = numbers
    monkeypatch.setattr(
        "tfbbb.prediction.recalibration.choice._WORST_INTERVAL_SCORE", 0.5
    )
    left = choose(model.likelihood, prediction, y).report
    assert left["chosen"] == "variance_scaling"
    assert "interval score is worse by" in left["reason"]
