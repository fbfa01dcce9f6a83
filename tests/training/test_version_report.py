"""The report of a version, with figures that other ways compute too."""

import math
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from tests.training.conftest import NOISE, ROWS, SLOPE, columns
from tfbbb.judging.explain.effects import effect
from tfbbb.training.job_clock import JobClock


@pytest.fixture(scope="module")
def report(of_numbers):
    return replace(of_numbers.report, seconds=1e9).to_dict()


@pytest.fixture(scope="module")
def report_of_classes(of_classes):
    return replace(of_classes.report, seconds=1e9).to_dict()


def test_rows_are_those_of_the_table(report):
    # The first five have no target, and rows count from 1.
    assert report["held_out"]["row"][0] == report["variance_split"]["row"][0] == 6
    _, _, y = columns()
    np.testing.assert_allclose(report["held_out"]["target"], y[5:], rtol=1e-6)


def test_calibration_has_the_measured_coverage(of_numbers, report):
    calibration = report["calibration"]
    for level in (0.5, 0.9, 0.95):
        place = calibration["levels"].index(level)
        assert calibration["coverage"][place] == pytest.approx(
            of_numbers.metrics[f"coverage_{100 * level:g}"], rel=1e-6
        )
        # The band of a binomial share contains its mean.
        assert calibration["lower"][place] <= level <= calibration["upper"][place]


def test_the_column_that_decides_is_the_most_important(report):
    importance = report["importance"]
    assert [found["name"] for found in importance["columns"]] == ["x", "word"]
    assert importance["left_out"] == []
    # Shuffling adds 2 SLOPE^2 to the mean squared error; the network is a little
    # flatter, and 195 rows have a standard error of some 10 %.
    expected = np.sqrt(2 * SLOPE**2 + NOISE**2) - NOISE
    assert importance["columns"][0]["error"] == pytest.approx(expected, rel=0.4)


def test_effects_are_those_of_explain(of_numbers, report):
    found = {part["name"]: part for part in report["effects"]}
    assert found["word"]["kind"] == "text"
    assert sorted(found["word"]["values"]) == ["a", "b"]
    x = found["x"]
    given = of_numbers.report
    expected = effect(
        of_numbers.model, given.rows.inputs, "x", points=15, max_rows=50, num_samples=20
    )
    np.testing.assert_allclose(x["mean"], expected.mean, rtol=1e-5)
    assert (np.array(x["lower"]) <= x["mean"]).all()
    assert (np.array(x["upper"]) >= x["mean"]).all()


def test_a_diagnosis_has_the_figures_of_the_held_out_rows(report):
    found = report["diagnosis"]
    figures = {one["name"]: one["figure"] for one in found["figures"]}
    nll = -report["metrics"]["log_likelihood"]
    assert figures["negative log-likelihood per row"] == f"{nll:.3g}"
    assert {"temperature", "weights at their prior"} <= set(figures)
    assert any(name.startswith("signal-to-noise of ") for name in figures)
    # Its rows follow the line, with the noise that it learns.
    assert not {"learned_nothing", "too_sure"} & {x["name"] for x in found["findings"]}


def test_variance_split_is_that_of_the_model(of_numbers, report):
    split = report["variance_split"]
    prediction = of_numbers.model.predictive(of_numbers.report.rows.inputs)
    np.testing.assert_allclose(
        split["epistemic"], prediction.epistemic[:, 0], rtol=1e-5
    )
    np.testing.assert_allclose(
        split["aleatoric"], prediction.aleatoric[:, 0], rtol=1e-5
    )


def test_without_time_only_the_explanations_are_left_out(of_numbers):
    found = replace(of_numbers.report, seconds=0.0).to_dict()
    assert found["importance"] is None
    assert found["effects"] == []
    assert len(found["held_out"]["row"]) == ROWS - 5


def test_columns_are_explained_until_the_time_is_over(of_numbers):
    # A clock that is one second later each time it is read: it is read at the start,
    # before the importance and before each column. 2.5 s are left for the importance.
    clock = count()
    found = replace(of_numbers.report, seconds=5.0).to_dict(lambda: next(clock))
    assert [part["name"] for part in found["importance"]["columns"]] == ["x"]
    assert found["importance"]["left_out"] == ["word"]
    assert [part["name"] for part in found["effects"]] == ["x"]


def test_report_of_classes_has_probabilities_and_bins(of_classes, report_of_classes):
    found = report_of_classes
    held_out, rows = found["held_out"], len(of_classes.held_out_rows)
    assert found["classes"] == ["above", "below"]
    assert [row - 1 for row in held_out["row"]] == of_classes.held_out_rows.tolist()
    probabilities = np.array(held_out["probabilities"])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)
    right = np.array(found["classes"])[probabilities.argmax(axis=1)]
    accuracy = np.mean(right == held_out["target"])
    assert accuracy == pytest.approx(of_classes.metrics["accuracy"])
    calibration = found["calibration"]
    assert sum(calibration["counts"]) == calibration["rows"] == rows
    for number, accuracy in zip(
        calibration["counts"], calibration["accuracy"], strict=True
    ):
        assert (accuracy is None) == (number == 0)
    assert np.shape(found["effects"][0]["mean"])[1] == 2
    assert found["variance_split"]["measure"] == "entropy"


def test_effects_have_the_spelling_of_the_table(report_of_classes):
    (new,) = (part for part in report_of_classes["effects"] if part["name"] == "new")
    assert (new["kind"], new["values"]) == ("text", ["nein", "ja"])
    # The probability of "above" rises.
    assert new["mean"][0][0] < new["mean"][1][0]


def test_the_report_has_a_share_of_the_time():
    def seconds(limit, elapsed):
        clock = JobClock(elapsed, now=lambda: 0.0)
        clock.limit = limit
        return clock.seconds_to_report

    assert seconds(math.inf, 4.0) == 1.0
    assert seconds(math.inf, 600.0) == 30.0
    assert seconds(10.0, 4.0) == 0.5
    # The model has to be written in time.
    assert seconds(10.0, 9.0) < 0
