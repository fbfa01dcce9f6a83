import types

import numpy as np
import pytest
from scipy import stats

import tfbbb
from tests.prediction.recalibration.known_models import (
    DRAWS,
    FRESH,
    X,
    network,
    spread_out,
)
from tfbbb.prediction.recalibration import ConformalIntervals

LIKELIHOOD = tfbbb.likelihoods.Normal()


@pytest.mark.parametrize(
    ("rows", "level"),
    [
        *((19, 0.9), (30, 0.83)),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((19, 0.5), (19, 0.83), (30, 0.5), (30, 0.9))
        ),
    ],
)
def test_coverage_is_between_the_level_and_one_row_above(rows, level):
    # For heavy tails and wrong means and spreads, over held-out rows and a new one.
    generator = np.random.default_rng(0)
    truth = stats.t(2.0, loc=0.5, scale=3.0)
    assumed = types.SimpleNamespace(mean=np.zeros((rows, 1)), stddev=1.0)
    coverage = []
    for _ in range(1000):
        y = truth.rvs((rows, 1), random_state=generator)
        reach = ConformalIntervals().fitted(LIKELIHOOD, assumed, y).reach(level)
        # The probability of a new one, in closed form.
        coverage.append(truth.cdf(reach[0]) - truth.cdf(-reach[0]))
    exact = np.ceil((rows + 1) * level - 1e-6) / (rows + 1)
    assert level - 1e-6 <= exact <= level + 1.0 / (rows + 1)
    assert np.mean(coverage) == pytest.approx(exact, abs=4.0 * stats.sem(coverage))


def test_the_scores_give_the_width_of_intervals():
    model = network(2)
    y = spread_out(model, X[:99], [3.0, 0.5])
    raw = model.predictive(X[:99], num_samples=DRAWS)
    found = model.recalibrate(X[:99], y, "conformal_intervals", num_samples=DRAWS)
    assert found.num_rows == 99
    prediction = model.predictive(X[:99], num_samples=DRAWS)
    lower, upper = prediction.interval(0.8)
    np.testing.assert_allclose(0.5 * (lower + upper), raw.mean)
    # Of 99 scores, 80 are the 80 % of 100 and hence within, the last at the edge.
    inside = (y >= lower - 1e-9) & (y <= upper + 1e-9)
    np.testing.assert_array_equal(inside.sum(axis=0), [80, 80])


def test_metrics_use_the_conformal_intervals():
    model = network()
    y = spread_out(model, X, 3.0)
    model.recalibrate(X, y, "conformal_intervals", num_samples=DRAWS)
    prediction = model.predictive(FRESH, num_samples=DRAWS)
    lower, upper = prediction.interval(0.9)
    width = tfbbb.metrics.interval_width(prediction, 0.9)
    assert width == pytest.approx(np.mean(upper - lower))
    fresh = spread_out(network(), FRESH, 3.0, seed=1)
    coverage = tfbbb.metrics.interval_coverage(prediction, fresh, 0.9)
    assert coverage == np.mean((lower <= fresh) & (fresh <= upper))
    # Sampling error of the held-out rows and of the fresh ones.
    assert coverage == pytest.approx(0.9, abs=4.0 * np.sqrt(2 * 0.09 / 2000))


def test_only_intervals_change():
    model = network()
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


def test_counts_have_intervals_too():
    model = network(1, "poisson")
    counts = np.random.default_rng(0).poisson(3.0, size=(200, 1))
    assert isinstance(model.recalibrate(X[:200], counts), ConformalIntervals)
    lower, upper = model.predictive(X[:200]).interval(0.9)
    assert np.mean((lower <= counts) & (counts <= upper)) >= 0.9


def test_a_level_that_needs_more_rows_is_refused():
    model = network()
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
    some = types.SimpleNamespace(mean=np.zeros((5, 4, 1)), stddev=1.0)
    with pytest.raises(ValueError, match=r"Places of one row.*\(5, 4, 1\)"):
        ConformalIntervals().fitted(LIKELIHOOD, some, np.zeros((5, 4, 1)))


def test_classes_are_refused():
    with pytest.raises(ValueError, match=r"Classes have no intervals.*Categorical"):
        network(3, "categorical").recalibration = ConformalIntervals([[1.0]])


def test_every_target_needs_its_scores():
    with pytest.raises(ValueError, match=r"The model has 2 targets.*targets=1, rows=1"):
        network(2).recalibration = ConformalIntervals([[1.0]])


@pytest.mark.parametrize(
    "scores", [[], [[-1.0]], [[np.nan]], [[np.inf]], [[1.0], [1.0, 2.0]], [[[1.0]]]]
)
def test_scores_must_be_finite_numbers_of_each_target(scores):
    with pytest.raises(ValueError, match="`scores` must be lists of finite numbers"):
        ConformalIntervals(scores)
