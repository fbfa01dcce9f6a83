import numpy as np
import pytest

from tests.prediction.recalibration.known_models import (
    DRAWS,
    FRESH,
    DrawnModel,
    X,
    spread_out,
)
from tfbbb.prediction.recalibration import (
    ConformalIntervals,
    ConformalSets,
    VarianceScaling,
)
from tfbbb.prediction.recalibration.factors import scaled
from tfbbb.prediction.recalibration.recalibration import IDENTITY


@pytest.mark.parametrize("by", [None, 0])
def test_distances_and_conformal_intervals_grow_by_their_own_factors(by):
    model = DrawnModel()
    x = np.round(X[:200])
    prediction = model.predictive(x, num_samples=DRAWS)
    y = spread_out(model, x, 2.0)
    method = ConformalIntervals(density=VarianceScaling())
    labels = None if by is None else x[:, 0].astype(np.float32)
    fitted = method.fitted(model.likelihood, prediction, y, None, by, labels)
    model.recalibration = fitted
    before = model.predictive(FRESH[:50], num_samples=DRAWS)
    model.recalibration = scaled(fitted, model.likelihood, 0.5, 0.25)
    after = model.predictive(FRESH[:50], num_samples=DRAWS)
    np.testing.assert_allclose(after.stddev, 0.5 * before.stddev)
    np.testing.assert_allclose(after.mean, before.mean)
    lengths = [np.subtract(*p.interval(0.8)[::-1]) for p in (before, after)]
    # The mixture of the draws is nearly normal.
    np.testing.assert_allclose(lengths[1], 0.25 * lengths[0], rtol=1e-2)
    assert len(model.recalibration.group_values) == len(fitted.group_values)


def test_sets_keep_their_scores():
    likelihood = DrawnModel(3, "categorical").likelihood
    sets = ConformalSets([[0.0, 0.3, 0.99]])
    found = scaled(sets, likelihood, 0.5, 0.25)
    assert found.scores == sets.scores
    assert found.density.temperature == 0.5


def test_without_a_recalibration_there_is_one_of_the_factor():
    likelihood = DrawnModel().likelihood
    assert scaled(IDENTITY, likelihood, 0.5, 0.25).factors == (0.5,)
    assert scaled(IDENTITY, likelihood, 1.0, 1.0) == IDENTITY
