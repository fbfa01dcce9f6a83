"""Splits in time, and what jobs make of later rows."""

import types

import numpy as np

from tests.benchmarks.programs import load

time_splits = load("time_splits")
tables = load("package_tables")


def test_the_test_is_the_fifth_after_the_training():
    for number in range(4):
        training, test = time_splits.rows_in_time(103, number)
        np.testing.assert_array_equal(training, np.arange(len(training)))
        assert test[0] == len(training)
        assert len(test) in (20, 21)
    _, last = time_splits.rows_in_time(103, 0)
    assert last[-1] == 102


def table(rows=120):
    noise = np.random.default_rng(0).normal(size=rows)
    lines = "\n".join(f"{t},{n:.3f},{2 * n + t % 3}" for t, n in enumerate(noise))
    entry = {"target": "y", "time": "t"}
    return tables.source_table("it", entry, f"t,x,y\n{lines}\n")


def test_methods_differ_in_their_validation():
    options = types.SimpleNamespace(methods=list(time_splits.METHODS), smoke=False)
    found = time_splits.measurements(table(), "t", 0, options)
    validations = [each.settings["spec"]["training"]["validation"] for each in found]
    assert validations == [{"time": "t"}, {"time": "t", "fraction": 0.1}, {}]
