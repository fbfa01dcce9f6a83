"""The sequential test of drift: its p-values, its false alarms and its power."""

import itertools
import json
from collections import Counter

import numpy as np
import pytest
from scipy.stats import norm

from tfbbb.judging.drift import FALSE_ALARM_RATE, Bag, DriftTest, Martingale


@pytest.fixture
def generator():
    return np.random.default_rng(0)


def scores_of(errors):
    """The negative log-likelihood and the PIT of standard normal predictions."""
    return np.stack([errors**2 / 2, norm.cdf(errors)], axis=1)


def test_p_values_are_uniform_and_independent_over_all_orders():
    # Of distinct scores, p = (rank + tie) / size; the ranks take all values equally.
    seen = Counter()
    for order in itertools.permutations([-1.0, 0.5, 2.0, 3.0, 7.0]):
        reference, new = np.array(order[:2]), np.array(order[2:])
        p = Bag().add(reference).p_values(new, np.zeros(3))
        seen[tuple(np.round(p * [3, 4, 5]).astype(int))] += 1
    assert seen == dict.fromkeys(itertools.product(range(3), range(4), range(5)), 2)


def test_martingale_is_fair_at_every_row(generator):
    # The mean over p of each bet is 1, by Gauss-Legendre quadrature.
    nodes, weights = np.polynomial.legendre.leggauss(8)
    martingale = Martingale.start(8)
    for p in generator.random(20):
        martingale = martingale.bet(np.full(8, p))
    after = np.exp(martingale.bet((nodes + 1) / 2).log_value)
    assert np.sum(weights / 2 * after) == pytest.approx(np.exp(martingale.log_value[0]))


def test_simulated_false_alarm_rate_is_five_percent(generator):
    # The standard error of 1000 sequences is 0.0069.
    num_sequences, num_scores, alarmed = 1000, 2, np.zeros(1000, bool)
    martingales = Martingale.start(num_sequences, num_scores)
    for _ in range(3000):
        martingales = martingales.bet(generator.random((num_sequences, num_scores)))
        share = martingales.log_value.max(axis=1) - np.log(num_scores)
        alarmed |= share >= np.log(1 / FALSE_ALARM_RATE)
    assert abs(alarmed.mean() - FALSE_ALARM_RATE) < 0.01 + 2 * 0.0069


def test_p_values_of_dependent_scores_raise_no_more_alarms(generator):
    num_sequences, num_rows = 200, 512
    p_values = np.empty((num_rows, num_sequences, 2))
    for sequence in range(num_sequences):
        errors = generator.standard_t(3, size=100 + num_rows)
        ties = generator.random((2, num_rows))
        for place, scores in enumerate(scores_of(errors).T):
            bag = Bag().add(scores[:100])
            p_values[:, sequence, place] = bag.p_values(scores[100:], ties[place])
    # Each is uniform: five standard errors of the mean of 102 400 uniform numbers.
    assert np.abs(p_values.mean(axis=(0, 1)) - 0.5).max() < 5 * np.sqrt(1 / 12 / 102400)
    martingales, alarmed = Martingale.start(num_sequences, 2), np.zeros(200, bool)
    for p in p_values:
        martingales = martingales.bet(p)
        alarmed |= martingales.log_value.max(axis=1) >= np.log(2 / FALSE_ALARM_RATE)
    # Four standard errors of 200 sequences above 5 %.
    assert alarmed.mean() < FALSE_ALARM_RATE + 4 * 0.0154


@pytest.mark.parametrize(("quiet", "most"), [(0, 90), (1000, 180)])
def test_shift_of_half_a_standard_deviation_is_found_soon(quiet, most, generator):
    # Over 200 sequences the median delay is 64 rows, and 126 after 2000 quiet rows.
    delays = []
    for _ in range(30):
        errors = generator.normal(size=200 + quiet + 400)
        errors[200 + quiet :] += 0.5
        scores = scores_of(errors)
        test = DriftTest.start(scores[:200]).update(scores[200:])
        delays.append((test.alarm_row or np.inf) - quiet)
    assert np.median(delays) < most


def test_smaller_and_larger_errors_both_raise_alarms(generator):
    for scale in (0.5, 2.0):
        errors = generator.normal(size=700)
        errors[200:] *= scale
        scores = scores_of(errors)
        test = DriftTest.start(scores[:200]).update(scores[200:])
        assert test.alarm_row is not None


def test_test_does_not_depend_on_how_rows_are_split(generator):
    scores = np.round(scores_of(generator.normal(size=1300)), 1)
    whole = DriftTest.start(scores[:50], seed=3).update(scores[50:])
    parts = DriftTest.start(scores[:50], seed=3)
    for part in np.split(scores[50:], [1, 2, 2, 30, 600, 1199]):
        parts = DriftTest.from_dict(json.loads(json.dumps(parts.to_dict())))
        parts = parts.update(part)
    assert parts.to_dict() == whole.to_dict()
    other = DriftTest.start(scores[:50], seed=4).update(scores[50:])
    assert other.log_value != whole.log_value


def test_test_without_reference_compares_rows_with_each_other(generator):
    errors = generator.normal(size=600)
    errors[300:] += 1.0
    test = DriftTest.start(np.zeros((0, 2))).update(scores_of(errors))
    assert test.alarm_row is not None
    assert test.alarm_row > 300


@pytest.mark.parametrize("scores", [np.zeros((3, 2)), np.zeros(3), [[np.nan]]])
def test_scores_of_another_shape_or_not_numbers_are_refused(scores):
    with pytest.raises(ValueError, match="Received: "):
        DriftTest.start(np.zeros((5, 1))).update(scores)
