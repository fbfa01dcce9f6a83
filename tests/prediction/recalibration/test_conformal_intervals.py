import numpy as np
import pytest
from scipy import stats

import tfbbb
from tests.prediction.recalibration.known_models import (
    DRAWS,
    DrawnModel,
    Known,
    X,
    network,
    spread_out,
)
from tfbbb.prediction.conformal_reach import FARTHEST, bounds_of_scores
from tfbbb.prediction.recalibration import ConformalIntervals

LIKELIHOOD = tfbbb.likelihoods.Normal()


def bounds(recalibration, known, level):
    """Returns the bounds of a row's interval."""
    return bounds_of_scores(
        recalibration.reach(np.array([level]))[np.newaxis],
        known.quantile,
        discrete=known.discrete,
        limits=(0.0, 1e12) if known.discrete else None,
    )[0, :, 0, 0]


@pytest.mark.few(1)
@pytest.mark.parametrize(("rows", "level"), [(19, 0.9), (30, 0.83)])
def test_coverage_is_between_the_level_and_one_row_above(rows, level):
    # For heavy tails and wrong means and spreads, over held-out rows and a new one.
    generator = np.random.default_rng(0)
    truth = stats.t(2.0, loc=0.5, scale=3.0)
    assumed = Known(stats.norm(), rows)
    coverage = []
    for _ in range(1000):
        y = truth.rvs((rows, 1), random_state=generator)
        fitted = ConformalIntervals().fitted(LIKELIHOOD, assumed, y)
        lower, upper = bounds(fitted, assumed, level)
        # The probability of a new one, in closed form.
        coverage.append(truth.cdf(upper) - truth.cdf(lower))
    exact = np.ceil((rows + 1) * level - 1e-6) / (rows + 1)
    assert level - 1e-6 <= exact <= level + 1.0 / (rows + 1)
    assert np.mean(coverage) == pytest.approx(exact, abs=4.0 * stats.sem(coverage))


def test_scores_of_a_normal_prediction_are_standard_deviations():
    y = np.array([[-7.5], [1.0], [3.0], [6.0]])
    found = ConformalIntervals().fitted(LIKELIHOOD, Known(stats.norm(1.0, 2.0), 4), y)
    assert found.scores[0] == pytest.approx([0.0, 1.0, 2.5, 4.25])


def test_intervals_beyond_the_digits_of_a_distribution_become_longer():
    # F(y) is 1 to all digits.
    known = Known(stats.norm(1.0, 2.0), 3)
    found = ConformalIntervals().fitted(LIKELIHOOD, known, np.array([[0.0], [41], [3]]))
    assert found.scores[0] == pytest.approx([0.5, 1.0, 20.0])
    assert bounds(found, known, 0.75) == pytest.approx([-39.0, 41.0])


@pytest.mark.parametrize("rate", [0.02, 0.7, 30.0])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_of_counts_are_counts_that_cover_the_level(rate, level):
    known = Known(stats.poisson(rate), 199, discrete=True)
    generator = np.random.default_rng(0)
    # Of twice the variance that the model has.
    truth = stats.nbinom(rate, 0.5)
    held_out = truth.rvs((199, 1), random_state=generator)
    found = ConformalIntervals().fitted(LIKELIHOOD, known, held_out)
    lower, upper = bounds(found, known, level)
    assert (lower, upper) == (max(int(lower), 0), int(upper))
    assert np.mean((lower <= held_out) & (held_out <= upper)) >= level
    # The interval without one of its ends does not.
    ends = lower < held_out, held_out < upper
    assert min(np.mean(ends[0] & (held_out <= upper)), np.mean(ends[1])) < level


def test_a_count_that_the_model_thinks_impossible_is_covered():
    known = Known(stats.poisson(1e-9), 4, discrete=True)
    y = np.array([[0.0], [0.0], [0.0], [12.0]])
    found = ConformalIntervals().fitted(LIKELIHOOD, known, y)
    assert found.scores[0] == pytest.approx([0.0, 0.0, 0.0, 24.0 * FARTHEST])
    assert bounds(found, known, 0.6).tolist() == [0.0, 0.0]
    assert bounds(found, known, 0.8).tolist() == [0.0, 12.0]


def test_no_bound_is_a_number_that_the_likelihood_excludes():
    model = DrawnModel(1, "log_normal")
    y = np.random.default_rng(0).beta(0.2, 0.9, size=(99, 1)).clip(1e-6, 1 - 1e-6)
    model.likelihood.adapt(y)
    model.recalibrate(X[:99], y, "conformal_intervals", num_samples=DRAWS)
    prediction = model.predictive(X[:99], num_samples=DRAWS)
    lower, upper = prediction.interval([0.5, 0.9, 0.99])
    support = model.likelihood.support
    assert (support.low <= lower).all()
    assert (upper <= support.high).all()
    inside = (lower <= y[:, np.newaxis]) & (y[:, np.newaxis] <= upper)
    # Of 99 scores, j = 100 level are within, of the same rows.
    assert inside.sum(axis=(0, 2)) == pytest.approx([50, 90, 99], abs=1)


def test_bounds_of_targets_bound_quantiles_intervals_and_samples(tmp_path):
    model = network()
    model.likelihood.adapt([[0.0], [2.0]])
    model.likelihood.bounds = (0.0, 1.5)
    # Scores beyond `FARTHEST` too.
    model.recalibration = ConformalIntervals([[0.1, 0.5, 1.5, 20.0]])
    model.export_predictive(tmp_path / "1")
    for exported in (model, model.from_config(model.get_config())):
        assert exported.likelihood.bounds == (0.0, 1.5)
    for which in (model, tfbbb.load(tmp_path / "1")):
        prediction = which.predictive(X[:20])
        levels = [0.2, 0.6, 0.8]
        lower, upper = prediction.interval(levels)
        assert lower.min() == 0.0
        assert upper.max() == 1.5
        for values in (prediction.quantile([0.001, 0.999]), prediction.sample(50)):
            assert (values.min(), values.max()) == (0.0, 1.5)


def test_only_intervals_change():
    model = DrawnModel()
    before = model.predictive(X[:50])
    model.recalibrate(X[:50], spread_out(model, X[:50], 3.0), "conformal_intervals")
    after = model.predictive(X[:50])
    for name, value in before.to_numpy().items():
        np.testing.assert_array_equal(after.to_numpy()[name], value)
    np.testing.assert_array_equal(
        after.quantile([0.1, 0.9]), before.quantile([0.1, 0.9])
    )
    np.testing.assert_array_equal(
        after.log_prob(before.mean), before.log_prob(before.mean)
    )


def test_a_level_that_needs_more_rows_is_refused():
    model = DrawnModel()
    model.recalibration = ConformalIntervals([np.arange(20.0).tolist()])
    assert model.recalibration.reach(20 / 21) == [19.0]
    with pytest.raises(ValueError, match=r"takes 99 held-out rows.*level=0\.99"):
        model.predictive(X[:5]).interval(0.99)


def test_levels_in_single_precision_are_rounded_to_decimals():
    fitted = ConformalIntervals([np.arange(999.0).tolist()])
    for percent in range(1, 100):
        for level in (percent / 100, np.float32(percent / 100)):
            assert fitted.reach(level) == [10.0 * percent - 1.0]


def test_places_of_a_row_are_refused():
    some = Known(stats.norm(), 5)
    with pytest.raises(ValueError, match=r"Places of one row.*\(5, 4, 1\)"):
        ConformalIntervals().fitted(LIKELIHOOD, some, np.zeros((5, 4, 1)))
