"""Splits in time, and what jobs make of later rows."""

import types

import numpy as np
import pytest

from tests.benchmarks.programs import load

time_splits = load("time_splits")
strangers = load("strangers")


def test_every_table_has_a_time_and_a_target_of_numbers():
    entries = strangers.known_tables()
    for name in time_splits.SETS:
        assert "time" in entries[name]
        assert entries[name].get("task", "regression") == "regression"


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
    return strangers.source_table("it", entry, f"t,x,y\n{lines}\n")


def test_methods_differ_in_their_validation():
    options = types.SimpleNamespace(methods=list(time_splits.METHODS), smoke=False)
    found = time_splits.measurements(table(), "t", 0, options)
    validations = [each.settings["spec"]["training"]["validation"] for each in found]
    assert validations == [{"time": "t"}, {"time": "t", "fraction": 0.1}, {}]


@pytest.mark.slow
def test_a_job_has_figures_of_later_rows():
    spec = {"target": "y", "training": {"epochs": 5, "validation": {"time": "t"}}}
    found = time_splits.figures(table(), 0, spec)
    assert found["rows"] == 24
    assert 0.0 <= found["coverage_90"] <= 1.0
    assert found["width_90"] > 0.0


def test_the_report_and_the_comparison_are_made_of_records():
    figures = dict.fromkeys(("rmse", "log_likelihood", "width_90"), 1.0)
    figures["coverage_90_left_out"] = 0.9
    records = [
        {"set": name, "method": "order", "coverage_90": coverage, **figures}
        for name, coverage in {"a": 0.91, "b": 0.8}.items()
    ]

    def select(**wanted):
        return [r for r in records if all(r[k] == v for k, v in wanted.items())]

    measured = types.SimpleNamespace(records=records, select=select, skipped=[])
    found = time_splits.compare(measured)
    assert [each.is_worse for each in found] == [False, True]
    assert "| all tables |" in time_splits.report(measured)
