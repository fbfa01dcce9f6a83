"""Means of records, ranks of methods, and where others are better."""

import math

import numpy as np
import pytest

from tests.benchmarks.programs import load

results = load("results")


def records(**by_method):
    return [
        {"set": name, "method": method, "split": split, "rmse": rmse}
        for method, by_set in by_method.items()
        for name, figures in by_set.items()
        for split, rmse in enumerate(figures)
    ]


def test_means_have_the_error_of_independent_values_and_infinite_ones_are_named():
    values = np.random.default_rng(0).normal(size=20)
    mean, error = results.mean_and_error(values.tolist())
    assert mean == pytest.approx(values.mean())
    assert error == pytest.approx(values.std(ddof=1) / math.sqrt(20))
    assert results.with_error([1.0, None]) == "not finite"
    assert results.with_error([]) == ""
    assert results.with_error([0.5], digits=1, factor=100.0) == "50.0"
    assert results.with_error([1.0, 3.0]) == "2.00±1.00"


def test_ranks_share_equal_places_and_count_complete_tables():
    found = {
        "a": {"x": {0: 1.0}, "y": {0: 2.0}, "z": {0: 2.0}},
        "b": {"x": {0: 3.0, 1: 9.0}, "y": {0: 2.0}, "z": {0: 1.0, 1: 9.0}},
    }
    best = {"x": [3.0, 1.0], "y": [1.5, 2.0], "z": [1.5, 3.0]}
    assert results.ranks(found, larger_is_better=True) == best
    worst = {"x": [1.0, 3.0], "y": [2.5, 2.0], "z": [2.5, 1.0]}
    assert results.ranks(found, larger_is_better=False) == worst


def test_losses_are_beyond_the_error_of_the_common_splits():
    found = records(
        default={"boston": [1.0, 2.0, 9.0], "energy": [2.0, 2.0], "wine": [1.0]},
        ngboost={"boston": [2.0, 5.0], "energy": [1.0, 1.1], "wine": [0.9]},
        # The mean difference is its standard error.
        crepes={"boston": [0.0, 2.0], "energy": [0.5, 0.5]},
        quick={"boston": [0.0, 0.0]},
    )
    (line,) = results.losses(found, ["ngboost", "crepes"], {"RMSE": (["rmse"], False)})
    assert line == (
        "- RMSE: another library is better on 2 of 3 tables: energy (crepes), "
        "wine (ngboost)"
    )
