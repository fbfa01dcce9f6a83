"""Scores of times of which some are cut off."""

import numpy as np
import pytest

from tfbbb.prediction.survival_scores import (
    brier_of_rows,
    concordance_of_times,
    kaplan_meier,
    scored_times,
    step,
)

GENERATOR = np.random.default_rng(0)


def test_kaplan_meier_is_the_product_of_the_shares_that_survive():
    times = np.array([1.0, 2.0, 2.0, 3.0, 4.0])
    happened = np.array([True, True, False, False, True])
    known, survival = kaplan_meier(times, happened)
    assert known.tolist() == [1.0, 2.0, 4.0]
    # 4 of 5, then 3 of 4, then none of 1.
    np.testing.assert_allclose(survival, [0.8, 0.6, 0.0])
    assert step((known, survival), [0.5, 1.0, 3.9, 4.0]).tolist() == [
        *(1.0, survival[0]),
        *(survival[1], 0.0),
    ]


def test_a_row_of_weight_two_counts_as_two_rows_of_a_curve():
    times, happened = np.array([1.0, 2.0, 3.0]), np.array([True, False, True])
    weighted = kaplan_meier(times, happened, np.array([1.0, 2.0, 1.0]))
    places = [0, 1, 1, 2]
    repeated = kaplan_meier(times[places], happened[places])
    np.testing.assert_allclose(weighted[1], repeated[1])


def test_concordance_counts_pairs_whose_order_is_known():
    targets = np.array([[1.0, 1.0], [2.0, 0.0], [3.0, 1.0], [4.0, 1.0]])
    # The first row is shorter than three others, the third than the last.
    assert concordance_of_times(np.array([1.0, 9.0, 3.0, 4.0]), targets) == 1.0
    assert concordance_of_times(np.array([3.5, 9.0, 3.0, 4.0]), targets) == 0.75
    assert concordance_of_times(np.zeros(4), targets) == 0.5
    still_running = np.array([[1.0, 0.0], [2.0, 0.0]])
    assert concordance_of_times(np.zeros(2), still_running) is None


def test_brier_score_of_rows_cut_off_is_that_of_all_rows():
    times = GENERATOR.exponential(10.0, size=20_000)
    limits = GENERATOR.uniform(0.0, 40.0, size=20_000)
    happened = times <= limits
    cut_off = np.stack([np.where(happened, times, limits), happened], axis=1)
    at = scored_times(cut_off)
    survival = np.tile(np.exp(-at / 14.0), (20_000, 1))
    found = brier_of_rows(survival, cut_off).mean()
    outlives = times[:, np.newaxis] > at
    scores = np.square(outlives - survival)
    expected = np.trapezoid(scores, at, axis=1) / (at[-1] - at[0])
    # The weights at most double the error of a mean of 20 000 rows, some 0.001.
    assert found == pytest.approx(expected.mean(), abs=0.005)
