"""Gradient boosting as a judge: its noise, rare classes and time."""

import numpy as np
import pytest
from scipy import stats

from tfbbb.judging.evaluation.gradient_boosting import (
    TooSlowError,
    fit_gradient_boosting,
    score_gradient_boosting,
)

RNG = np.random.default_rng(0)


def test_numbers_have_the_noise_of_their_errors():
    relative = RNG.uniform(0.5, 2.0, size=4000)
    means = 2.0 * relative[:, np.newaxis]
    noise = 3.0 * np.sqrt(relative) * RNG.normal(size=4000)
    targets = means + noise[:, np.newaxis]
    scored = score_gradient_boosting(
        np.full_like(targets, 2.0), targets, relative=relative
    )
    scale = 3.0 * np.sqrt(relative)
    expected = stats.norm(means[:, 0], scale).logpdf(targets[:, 0])
    # The spread of 4000 rows has a relative standard error of 1.1 %.
    assert scored.log_prob.mean() == pytest.approx(expected.mean(), abs=2e-3)
    np.testing.assert_allclose(scored.mean, means)
    assert scored.coverage == pytest.approx(0.9, abs=3 * np.sqrt(0.09 / 4000))


def test_whole_numbers_have_probabilities():
    targets = np.round(RNG.normal(50.0, 5.0, size=(4000, 1)))
    means = np.full_like(targets, 50.0)
    scored = score_gradient_boosting(means, targets, discrete=True)
    expected = np.diff(
        stats.norm(50.0, 5.0).cdf(np.hstack([targets - 0.5, targets + 0.5]))
    )
    np.testing.assert_allclose(
        scored.log_prob.mean(), np.log(expected).mean(), rtol=0.02
    )


def test_a_class_without_a_row_is_as_probable_as_half_a_row():
    features = RNG.normal(size=(40, 1))
    labels = (features[:, 0] > 0).astype(int)
    found = fit_gradient_boosting(features, labels, features, num_classes=3)
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(found[:, 2]), 0.5 / 40, rtol=0.03)
    only = fit_gradient_boosting(features, np.zeros(40, int), features, num_classes=2)
    np.testing.assert_allclose(np.exp(only[:, 0]), 80 / 81)


@pytest.mark.parametrize(("columns", "seconds"), [(700, np.inf), (10, 0.01)])
def test_many_columns_or_little_time_leave_no_judge(columns, seconds):
    features = np.zeros((1100, columns))
    with pytest.raises(TooSlowError):
        fit_gradient_boosting(features, np.zeros((1100, 1)), features, seconds=seconds)
