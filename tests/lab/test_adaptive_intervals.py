"""Adapted intervals: the bound of their errors, their speed and floods."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from tfbbb.lab.adaptive_intervals import (
    LARGEST,
    LEVELS,
    STEP,
    AdaptiveIntervals,
    adapt_intervals,
    half_lengths,
    interval_scores,
)

REACH = norm.ppf(0.5 + np.array(LEVELS) / 2)
NINETY = LEVELS.index(0.9)


@pytest.fixture
def generator():
    return np.random.default_rng(0)


def scores_of(errors):
    """The scores of errors of standard normal predictions, [n, 1, levels]."""
    bounds = np.tile(REACH[:, np.newaxis], (len(errors), 1, 1))
    return interval_scores(errors[:, np.newaxis], -bounds, bounds, discrete=False)


def missed(scores, ends=None):
    """Whether each row misses the interval before it, and the ends after each row."""
    ends, errors, found = ends or AdaptiveIntervals.start(scores.shape[1]), [], []
    for score in scores:
        lower, upper = np.moveaxis(ends.ends, -1, 0)
        errors.append((score < lower) | (score > upper))
        ends = ends.update(score[np.newaxis])
        found.append(ends)
    return np.array(errors), found


def test_errors_add_up_to_the_change_of_the_log_length(generator):
    # Rows that are anything but independent: a random walk with heavy tails.
    walk = np.cumsum(generator.normal(size=400)) / 10
    errors, found = missed(scores_of(walk + generator.standard_t(2, size=400)))
    lengths = np.array([np.ptp(ends.ends, axis=-1) for ends in found])
    inside = (lengths > 2 / LARGEST) & (lengths < 2 * LARGEST)
    assert inside.all()
    excess = (errors - (1 - np.array(LEVELS))).sum(axis=0)
    np.testing.assert_allclose(excess, np.log(lengths[-1] / 2) / STEP, rtol=1e-9)


def test_coverage_of_every_run_of_rows_is_within_the_bound(generator):
    errors, _ = missed(scores_of(2.0 * np.sin(np.arange(3000) / 80)))
    sums = np.cumsum(errors[:, 0, NINETY])
    for size in (500, 1500):
        share = (sums[size:] - sums[:-size]) / size
        assert np.abs(share - 0.1).max() < math.log(LARGEST**2) / (STEP * size)


def test_rows_one_by_one_are_the_rows_at_once(generator):
    scores = scores_of(2.0 * generator.standard_t(3, size=60))
    whole = AdaptiveIntervals.start().update(scores)
    parts = AdaptiveIntervals.start()
    for place in range(60):
        parts = parts.update(scores[place : place + 1])
    np.testing.assert_array_equal(parts.ends, whole.ends)


@pytest.mark.parametrize("flood", [-1e30, 1e30])
def test_a_flood_moves_an_interval_by_its_bounds_at_most(flood):
    before = AdaptiveIntervals.start()
    one = before.update(scores_of(np.array([flood])))
    # One row moves an end by a tenth of the length.
    assert np.abs(one.ends - before.ends).max() < 2 * math.expm1(STEP)
    after = before.update(scores_of(np.full(5000, flood)))
    assert np.abs(after.ends).max() <= LARGEST
    assert after.factors.min() >= 1 / LARGEST - 1e-9


def test_intervals_recover_from_a_flood_within_300_rows(generator):
    honest = scores_of(generator.normal(size=1500))
    flooded = AdaptiveIntervals.start().update(scores_of(np.full(200, 1e6)))
    errors, found = missed(honest, flooded)
    assert min(ends.factors[0, NINETY] for ends in found[:300]) < 1.2
    sums = np.cumsum(errors[:, 0, NINETY])
    # 2.5 standard errors of 500 independent rows.
    assert abs((sums[800] - sums[300]) / 500 - 0.1) < 0.034


def test_wrong_labels_of_one_row_in_fifty_widen_by_a_fifth(generator):
    errors = generator.normal(size=3000)
    errors[::50] = 1e6
    _, found = missed(scores_of(errors))
    half = [np.ptp(ends.ends[0, NINETY]) / 2 for ends in found[500:]]
    # Of 98 % rows, 8 % may be missed for 90 % of all: a quantile of .918 in place of
    # .9 on one side each. Both sides of the wrong labels count as one.
    assert 1.0 < np.mean(half) < 1.25


def test_a_shift_is_followed_by_the_centre(generator):
    shifted = generator.normal(loc=1.5, size=2000)
    _, found = missed(scores_of(shifted))
    ends = np.mean([x.ends[0, NINETY] for x in found[500:]], axis=0) * REACH[NINETY]
    np.testing.assert_allclose(
        ends, [1.5 - REACH[NINETY], 1.5 + REACH[NINETY]], atol=0.2
    )


def rows_of_widths(errors, widths):
    """Scores and half lengths of predictions of these standard deviations."""
    bounds = REACH[:, np.newaxis] * widths[:, np.newaxis, np.newaxis]
    halves = half_lengths(-bounds, bounds, discrete=False)
    return interval_scores(errors[:, None], -bounds, bounds, discrete=False), halves


def answered(adaptive, half):
    """The adapted interval of 90 % of a row with the centre 0."""
    lower, upper = np.full((1, 1, 1), -half), np.full((1, 1, 1), half)
    ends, widest = adaptive.at([0.9]), adaptive.widest_at([0.9])
    found = adapt_intervals(lower, upper, ends, [0.9], discrete=False, widest=widest)
    return np.ravel(found)


def test_a_widened_row_moves_by_the_unit_that_was_seen(generator):
    errors = 3.0 + generator.normal(size=300)
    scores, halves = rows_of_widths(errors, np.ones(300))
    adaptive = AdaptiveIntervals.start().update(scores, halves=halves)
    seen = REACH[NINETY]
    moved = answered(adaptive, seen) - [-seen, seen]
    assert moved.min() > 1.0
    np.testing.assert_allclose(
        answered(adaptive, 13.0 * seen) - [-13.0 * seen, 13.0 * seen], moved
    )


def test_errors_add_up_where_widths_have_no_bound(generator):
    widths = np.exp(2.0 * generator.standard_t(3, size=400))
    scores, halves = rows_of_widths(2.0 * generator.normal(size=400) * widths, widths)
    ends, misses = AdaptiveIntervals.start(), 0
    for row in range(400):
        half = halves[row, 0, NINETY]
        lower, upper = answered(ends, half)
        misses += not lower <= scores[row, 0, NINETY] * half <= upper
        ends = ends.update(scores[row : row + 1], halves[row : row + 1])
    factor = ends.factors[0, NINETY]
    assert 1 / LARGEST < factor < LARGEST
    assert misses - 40 == pytest.approx(math.log(factor) / STEP, rel=1e-6)


def test_one_wide_row_raises_the_bound_by_a_tenth():
    widths = np.array([1.0, 1e3, 1.0])
    _, halves = rows_of_widths(np.zeros(3), widths)
    ends = AdaptiveIntervals.start().update(np.zeros_like(halves), halves)
    np.testing.assert_allclose(ends.widest, halves[0] * math.exp(STEP))


def test_before_the_first_row_nothing_changes():
    lower, upper = np.array([[[1.0], [0.0]]]), np.array([[[2.0], [7.0]]])
    ends = AdaptiveIntervals.start().at([0.5, 0.9])
    found = adapt_intervals(lower, upper, ends, [0.5, 0.9], discrete=False)
    np.testing.assert_array_equal(found, (lower, upper))


def test_the_interval_of_a_level_holds_those_of_lower_levels():
    lower, upper = np.array([[[0.0], [1.0]]]), np.array([[[9.0], [8.0]]])
    ends = np.array([[[-1.0, 1.0]], [[-2.0, 2.0]]])
    found = adapt_intervals(lower, upper, ends, [0.9, 0.5], discrete=False)
    assert np.ravel(found).tolist() == [-2.5, 0.0, 11.5, 9.0]


def test_counts_keep_whole_numbers_and_their_coverage(generator):
    counts = generator.poisson(3.0, size=(200, 1)).astype(float)
    lower, upper = np.full((200, 5, 1), 1.0), np.full((200, 5, 1), 4.0)
    scores = interval_scores(counts, lower, upper, discrete=True)
    ends = AdaptiveIntervals.start().update(scores)
    at = ends.at(LEVELS)
    low, high = adapt_intervals(lower, upper, at, LEVELS, discrete=True)
    np.testing.assert_array_equal(low, np.maximum(np.round(low), 0.0))
    inside = (low[:, NINETY] <= counts) & (counts <= high[:, NINETY])
    least, most = ends.ends[0, NINETY]
    np.testing.assert_array_equal(
        inside[:, 0],
        (least <= scores[:, 0, NINETY]) & (scores[:, 0, NINETY] <= most),
    )


def test_scores_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match=r"shape \[n, 1, 5\]. Received"):
        AdaptiveIntervals.start().update(np.full((2, 1, 5), np.nan))
