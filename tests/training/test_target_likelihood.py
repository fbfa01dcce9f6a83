"""The likelihood that is chosen for generated targets, and when the default is kept."""

import numpy as np
import pytest

from tfbbb.training.target_likelihood import (
    _possible,
    bounds_of_targets,
    choose_likelihood,
    target_resolution,
)

ROWS = 500


def features(rows=ROWS, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, 3))
    return x, np.sin(2 * x[:, 0]) + 0.5 * x[:, 1], generator


def choose(targets, x):
    return choose_likelihood(x, np.asarray(targets, np.float32)[:, np.newaxis])


def chosen(targets, x):
    return choose(targets, x).likelihood.name


def test_counts_have_a_likelihood_of_counts():
    x, f, generator = features()
    assert chosen(generator.poisson(np.exp(0.5 + 0.7 * f)), x) in (
        "poisson",
        "negative_binomial",
    )
    rate = np.exp(1 + 0.7 * f) * generator.gamma(1.0, 1.0, ROWS)
    choice = choose(generator.poisson(rate), x)
    assert choice.likelihood.name == "negative_binomial"
    assert [trial.likelihood.name for trial in choice.trials] == [
        "student_t",
        "poisson",
        "negative_binomial",
        "zero_inflated",
    ]


def test_positive_targets_of_multiplicative_noise_have_its_likelihood():
    x, f, generator = features()
    assert chosen(np.exp(3 + f + 0.5 * generator.normal(size=ROWS)), x) == "log_normal"
    rounded = np.round(np.exp(5 + f + 0.5 * generator.normal(size=ROWS))) + 6
    assert chosen(rounded, x) == "log_normal"
    assert chosen(np.exp(1 + 0.7 * f) * generator.gamma(1.5, 1.0, ROWS), x) == "gamma"


def test_a_likelihood_pays_for_the_error_of_its_mean():
    x, f, generator = features()
    # Very small values have a log-normal density, whose mean they do not have.
    choice = choose(np.exp(3 + f) * generator.gamma(0.3, 1.0, ROWS) + 1e-9, x)
    default, log_normal, gamma = choice.trials
    assert log_normal.log_likelihood > default.log_likelihood + 1.0
    assert log_normal.gain < -1.0
    # The default has a mean of neighbours too, but for its skew.
    difference = gamma.log_likelihood - default.log_likelihood
    assert gamma.gain == pytest.approx(difference, abs=0.1)
    assert choice.likelihood.name == "gamma"


def test_shares_have_a_beta_likelihood():
    x, f, generator = features()
    mean = 1 / (1 + np.exp(-f))
    assert chosen(generator.beta(4 * mean, 4 * (1 - mean)), x) == "beta"


def test_amounts_with_many_zeros_have_a_probability_of_zero():
    x, f, generator = features()
    amounts = np.exp(3 + f) * generator.gamma(2.0, 1.0, ROWS)
    amounts[generator.uniform(size=ROWS) < 1 / (1 + np.exp(f))] = 0.0
    choice = choose(amounts, x)
    assert choice.likelihood.label == "zero_inflated gamma"
    by_label = {trial.likelihood.label: trial for trial in choice.trials}
    assert by_label["zero_inflated gamma"].gain > 0.1
    # In other units the comparison is the same.
    again = choose(1e4 * amounts, x).trials
    for trial, other in zip(choice.trials, again, strict=True):
        assert other.gain == pytest.approx(trial.gain, abs=0.02)


def test_further_zeros_of_counts_have_a_probability_of_their_own():
    x, f, generator = features()
    counts = generator.poisson(np.exp(1.5 + 0.5 * f))
    assert chosen(counts, x) in ("poisson", "negative_binomial")
    counts[generator.uniform(size=ROWS) < 0.4] = 0
    assert choose(counts, x).likelihood.label == "zero_inflated negative_binomial"


def test_shares_that_reach_their_ends_have_masses_there():
    x, f, generator = features()
    mean = 1 / (1 + np.exp(-f))
    shares = generator.beta(4 * mean, 4 * (1 - mean))
    shares[generator.uniform(size=ROWS) < 0.1] = 0.0
    shares[generator.uniform(size=ROWS) < 0.3 * mean] = 1.0
    assert chosen(shares, x) == "inflated_beta"


def test_ratings_are_grades():
    x, f, generator = features()
    latent = 2.0 * f + generator.logistic(size=ROWS)
    # Grades at both ends are frequent.
    ratings = 1.0 + np.digitize(latent, [-1.5, -1.0, 0.5, 1.0])
    choice = choose(ratings, x)
    assert choice.likelihood.name == "grades"
    assert (choice.likelihood.low, choice.likelihood.high) == (1, 5)
    # Where a grade is missing they may be any numbers.
    ratings[ratings == 3.0] = 4.0
    names = [trial.likelihood.name for trial in choose(ratings, x).trials]
    assert "grades" not in names


def test_residuals_of_two_modes_have_a_mixture_of_two_normals():
    x, f, generator = features()
    sign = generator.choice([-1.0, 1.0], ROWS)
    assert (
        chosen(sign * (2.0 + f) + 0.2 * generator.normal(size=ROWS), x)
        == "normal_mixture"
    )
    # Of one mode, however skewed or heavy its tails.
    for noise in (generator.standard_t(2, ROWS), generator.gumbel(size=ROWS)):
        labels = [trial.likelihood.label for trial in choose(f + noise, x).trials]
        assert "normal_mixture" not in labels


@pytest.mark.parametrize("shift", [0.0, 20.0])
def test_symmetric_noise_keeps_the_default(shift):
    x, f, generator = features()
    noisy = shift + f + 0.5 * generator.standard_t(4, size=ROWS)
    choice = choose(noisy, x)
    assert choice.likelihood.name == "student_t"
    assert choice.likelihood.heteroscedastic
    # No residuals have two modes.
    assert len(choice.trials) == (3 if shift else 1)


def test_whole_numbers_need_not_be_counts():
    x, f, generator = features()
    choice = choose(np.round(20 + 5 * f + 2 * generator.normal(size=ROWS)), x)
    assert choice.likelihood.name == "student_t"
    assert choice.likelihood.resolution == 1.0
    assert len(choice.trials) >= 3


def test_likelihoods_of_counts_and_of_numbers_are_compared_by_probability():
    """A Poisson distribution of a large mean is nearly normal."""
    generator = np.random.default_rng(0)
    counts = generator.poisson(200.0, ROWS)
    trials = choose(counts, generator.normal(size=(ROWS, 2))).trials
    for trial in trials:
        # Both have the entropy of a normal distribution of this variance.
        entropy = 0.5 * np.log(2 * np.pi * np.e * 200.0)
        standard_error = np.sqrt(0.5 / ROWS)
        # Neighbours are some ten rows, whose mean has a tenth of the variance.
        assert trial.log_likelihood == pytest.approx(
            -entropy, abs=0.1 + 3 * standard_error
        )


def test_targets_decide_which_likelihoods_are_possible():
    counts = ["poisson", "negative_binomial"]
    with_zeros = [*counts, "zero_inflated negative_binomial"]
    assert _possible(np.array([0.0, 3.0, 1.0]), 1.0) == with_zeros
    assert _possible(np.array([0.0] + [1.0] * 9), 1.0) == counts
    assert _possible(np.array([7.0, 30.0]), 1.0) == [*counts, "log_normal", "gamma"]
    assert _possible(np.array([-1.0, 3.0]), 1.0) == []
    assert _possible(np.array([-1.0, 3.0]), None) == ["normal_mixture"]
    amounts = ["zero_inflated log_normal", "zero_inflated gamma"]
    assert _possible(np.array([0.0, 8.5]), 0.5) == amounts
    assert _possible(np.array([0.0] + [8.5] * 9), 0.5) == []
    assert _possible(np.array([0.0, 0.5]), None) == ["inflated_beta"]
    assert _possible(np.array([0.5, 1.0]), None) == [
        "log_normal",
        "gamma",
        "inflated_beta",
    ]
    assert _possible(np.array([0.0, 1.0]), 1.0) == with_zeros
    assert _possible(np.zeros(3), 1.0) == counts
    assert _possible(np.array([1.0, 2.0, 3.0]), 1.0) == [*counts, "grades 1 3"]
    assert _possible(np.array([-1.0, 0.0, 1.0]), 1.0) == []
    positive = ["log_normal", "gamma", "beta", "normal_mixture"]
    assert _possible(np.array([0.2, 0.7]), None) == positive
    # Of shares in per cent, one per cent may have been anything up to 1.5 %.
    assert _possible(np.array([0.01, 0.7]), 0.01) == []


def test_other_targets_must_be_possible_as_well():
    x, f, generator = features()
    targets = np.exp(3 + f + 0.5 * generator.normal(size=(ROWS))).astype(np.float32)
    others = np.array([[-1.0]], np.float32)
    choice = choose_likelihood(x, targets[:, np.newaxis], others=others)
    assert [trial.likelihood.name for trial in choice.trials] == ["student_t"]


def test_copies_of_rows_say_nothing_new():
    x, f, generator = features(100)
    y = np.exp(3 + f + 0.5 * generator.normal(size=100))
    once, twice = choose(y, x), choose(np.tile(y, 4), np.tile(x, (4, 1)))
    assert twice == once


def test_few_rows_keep_the_default():
    x, f, _ = features(59)
    assert choose(np.exp(3 * f), x).trials == ()


@pytest.mark.parametrize("texts", [("größer", "low"), ("größer".encode(), b"low")])
def test_texts_and_missing_numbers_are_features(texts):
    x, f, generator = features()
    words = np.where(f > 0, *np.array(texts, object))
    inputs = {"x": np.where(x[:, 2] > 1, np.nan, f), "word": words}
    targets = np.exp(3 + f + 0.5 * generator.normal(size=ROWS))
    assert chosen(targets, inputs) == "log_normal"


@pytest.mark.parametrize(
    ("least", "greatest", "bounds"),
    [
        (-1.0, 5.0, None),
        (0.0, 9038.0, (0.0, 1e18)),
        (0.1, 0.97, (0.0, 1.0)),
        (0.0, 100.0, (0.0, 100.0)),
        (0.0, 98.0, (0.0, 1e18)),
    ],
)
def test_targets_suggest_bounds(least, greatest, bounds):
    targets = np.linspace(least, greatest, 60)[:, np.newaxis]
    assert bounds_of_targets(targets) == bounds
    assert bounds_of_targets(targets[:59]) is None


@pytest.mark.parametrize(
    ("targets", "step"),
    [
        ([3, 4, 8, 5], 1.0),
        ([3, 5, 9, 7], 2.0),
        ([0.5, 1.0, 2.5], 0.5),
        ([12.34, 56.7, 8.9], 0.04),
        ([1000, 3000, 7000], 2000.0),
        ([250000, 310000, 120000], 10000.0),
    ],
)
def test_the_step_is_the_greatest_that_fits(targets, step):
    found = target_resolution(np.array(targets, np.float32)[:, np.newaxis])
    assert found == pytest.approx(step)


def test_real_numbers_have_no_step():
    targets = np.random.default_rng(0).normal(size=(50, 1)).astype(np.float32)
    assert target_resolution(targets) is None
