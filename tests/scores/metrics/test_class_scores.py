import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss

from tests.scores.metrics.known_predictions import Classes, classes, labels
from tfbbb.scores.metrics import (
    BrierScore,
    brier_score,
    expected_calibration_error,
    negative_log_likelihood,
    reliability_diagram,
)


def test_nll_equals_that_of_scikit_learn():
    prediction = classes()
    y = labels(prediction)
    assert negative_log_likelihood(prediction, y) == pytest.approx(
        log_loss(y, prediction.probabilities, labels=range(4))
    )


@pytest.mark.parametrize("num_classes", [2, 3, 4])
def test_brier_score_equals_that_of_scikit_learn(num_classes):
    prediction = classes(num_classes=num_classes)
    y = labels(prediction)
    expected = brier_score_loss(y, prediction.probabilities, labels=range(num_classes))
    assert brier_score(prediction, y) == pytest.approx(expected)
    per_row = brier_score(prediction, y, per_row=True)
    assert per_row.mean() == pytest.approx(expected)
    metric = BrierScore()
    metric.update_state(y, prediction)
    assert float(metric.result()) == pytest.approx(expected, rel=1e-5)


def test_targets_may_be_indices_columns_or_one_hot_rows():
    prediction = classes()
    y = labels(prediction)
    for same in (y[:, None], np.eye(4)[y], y.astype(float)):
        np.testing.assert_array_equal(
            brier_score(prediction, same, per_row=True),
            brier_score(prediction, y, per_row=True),
        )


def test_ece_weights_the_gap_of_each_bin_by_its_share():
    sure = np.array([0.55, 0.6, 0.85, 0.95, 1.0])
    prediction = Classes(np.stack([sure, 1.0 - sure], axis=1)[None])
    y = np.array([0, 1, 0, 1, 0])
    # Bins of 0.1, which hold their upper edges: {0.55, 0.6}, {0.85}, {0.95, 1}.
    gaps = np.abs([0.5 - 0.575, 1.0 - 0.85, 0.5 - 0.975])
    assert expected_calibration_error(prediction, y, bins=10) == pytest.approx(
        np.average(gaps, weights=[2, 1, 2])
    )
    diagram = reliability_diagram(prediction, y, bins=10)
    np.testing.assert_array_equal(diagram.counts, [0, 0, 0, 0, 0, 2, 0, 0, 1, 2])
    np.testing.assert_allclose(diagram.confidence[[5, 8, 9]], [0.575, 0.85, 0.975])
    np.testing.assert_allclose(diagram.accuracy[[5, 8, 9]], [0.5, 1.0, 0.5])
    assert np.isnan(diagram.accuracy[:5]).all()
    np.testing.assert_allclose(diagram.edges, np.linspace(0.0, 1.0, 11))
