"""The spread of gradient boosting comes from rows in other folds."""

import numpy as np
import pytest
from scipy import stats

from tfbbb.judging.evaluation.gradient_boosting import (
    TooSlowError,
    fit_gradient_boosting,
    score_gradient_boosting,
)

RNG = np.random.default_rng(0)
FOLDS = np.repeat([0, 1], 2000)


def test_numbers_have_the_student_noise_of_the_other_folds():
    noise = stats.t(4.0).rvs(4000, random_state=0) * np.where(FOLDS == 0, 1.0, 3.0)
    targets = noise[:, np.newaxis]
    scored = score_gradient_boosting(np.zeros_like(targets), targets, FOLDS)
    expected = stats.t(4.0, scale=np.where(FOLDS == 0, 3.0, 1.0)).logpdf(noise)
    # Scales of 2000 rows have a relative standard error of some 2 %.
    assert scored.log_prob.mean() == pytest.approx(expected.mean(), abs=0.08)
    np.testing.assert_array_equal(scored.mean, 0.0)


def test_classes_have_the_temperature_of_the_other_folds():
    logits = 4.0 * RNG.normal(size=(4000, 3))
    temperatures = np.where(FOLDS == 0, 2.0, 4.0)[:, np.newaxis]
    noise = RNG.gumbel(size=logits.shape)
    labels = (logits / temperatures + noise).argmax(axis=1)
    scored = score_gradient_boosting(logits, labels, FOLDS, num_classes=3)
    swapped = logits / np.where(FOLDS == 0, 4.0, 2.0)[:, np.newaxis]
    expected = swapped - np.log(np.exp(swapped).sum(axis=1, keepdims=True))
    expected = expected[np.arange(4000), labels].mean()
    assert scored.log_prob.mean() == pytest.approx(expected, abs=0.03)


def test_whole_numbers_have_probabilities():
    targets = np.round(RNG.normal(50.0, 5.0, size=(4000, 1)))
    means = np.full_like(targets, 50.0)
    scored = score_gradient_boosting(means, targets, FOLDS, discrete=True)
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


def test_too_many_columns_are_no_judge():
    features = np.zeros((1100, 700))
    with pytest.raises(TooSlowError):
        fit_gradient_boosting(features, np.zeros((1100, 1)), features)
