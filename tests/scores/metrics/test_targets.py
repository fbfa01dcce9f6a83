import numpy as np
import pytest

from tests.scores.metrics.known_predictions import classes, normals
from tfbbb import metrics

OF_NUMBERS = [
    metrics.negative_log_likelihood,
    metrics.root_mean_squared_error,
    metrics.crps,
    metrics.interval_coverage,
    metrics.pit_values,
    metrics.pit_histogram,
    metrics.calibration_curve,
    metrics.calibration_error,
    metrics.risk_coverage_curve,
]
OF_CLASSES = [
    metrics.negative_log_likelihood,
    metrics.brier_score,
    metrics.expected_calibration_error,
    metrics.reliability_diagram,
    metrics.risk_coverage_curve,
]


def name_of(score):
    return score.__name__


@pytest.mark.parametrize("score", OF_NUMBERS, ids=name_of)
def test_invalid_targets_of_numbers_are_refused(score):
    prediction = normals(rows=3, targets=2)
    y = prediction.mean
    for wrong, message in (
        (y[:2], "Received: 2 targets"),
        (y[:, :1], r"Received: shape=\(3, 1\)"),
        (y[:, 0], r"Received: shape=\(3,\)"),
        (y[:0], r"Received: y of shape \(0, 2\)"),
        (1.0, r"Received: y of shape \(\)"),
        (np.where(np.arange(6).reshape(3, 2) == 3, np.nan, y), "in row 1"),
    ):
        with pytest.raises(ValueError, match=message):
            score(prediction, wrong)


@pytest.mark.parametrize("score", OF_CLASSES, ids=name_of)
def test_invalid_targets_of_classes_are_refused(score):
    prediction = classes(rows=3)
    for wrong, message in (
        ([0, 1], "Received: 2 targets"),
        ([0, 1, 4], r"Received: \[4\] in row 2"),
        ([0, -1, 2], r"Received: \[-1\] in row 1"),
        ([0.5, 1, 2], r"Received: \[0.5\] in row 0"),
        (np.ones((3, 4)), r"Received: \[1.0, 1.0, 1.0, 1.0\] in row 0"),
        (np.ones((3, 2)), r"Received: shape=\(3, 2\)"),
        ([], r"Received: y of shape \(0,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            score(prediction, wrong)


def test_scores_of_classes_are_refused_for_numbers():
    prediction = normals()
    for score in set(OF_CLASSES) - set(OF_NUMBERS):
        with pytest.raises(ValueError, match=f"`{score.__name__}` scores predictions"):
            score(prediction, prediction.mean)


def test_scores_of_numbers_are_refused_for_classes():
    with pytest.raises(ValueError, match="scores predictions of numbers"):
        metrics.root_mean_squared_error(classes(), np.zeros(50, int))


def test_one_target_may_be_a_vector_or_a_column():
    prediction = normals(rows=5)
    y = prediction.mean + 1.0
    for score in (metrics.crps, metrics.root_mean_squared_error):
        assert score(prediction, y[:, 0]) == score(prediction, y)
