import numpy as np
import pytest
from scipy import stats

from tests.scores.metrics.known_predictions import (
    Mixture,
    classes,
    labels,
    normals,
    values,
)
from tfbbb.scores.metrics import (
    calibration_curve,
    calibration_error,
    pit_histogram,
    pit_values,
)

ROWS = 4000


def calibrated():
    counts = Mixture(
        stats.poisson(np.linspace(0.2, 6.0, ROWS)[None, :, None]), discrete=True
    )
    normal = normals(rows=ROWS)
    return {
        "numbers": (normal, values(normal)),
        "counts": (counts, values(counts)),
    }


CALIBRATED = calibrated()


@pytest.mark.parametrize("kind", CALIBRATED)
def test_pit_of_a_calibrated_prediction_is_uniform(kind):
    # One in ten thousand is refused by chance.
    pit = pit_values(*CALIBRATED[kind])
    assert pit.shape == (ROWS, 1)
    assert stats.kstest(pit.ravel(), "uniform").pvalue > 1e-4


def test_pit_of_a_number_is_the_distribution_function():
    prediction = normals(rows=5, targets=2)
    y = prediction.mean + 0.5
    np.testing.assert_array_equal(pit_values(prediction, y), prediction.cdf(y))


def test_pit_of_counts_depends_only_on_the_seed():
    prediction, y = CALIBRATED["counts"]
    first = pit_values(prediction, y, seed=3)
    np.testing.assert_array_equal(first, pit_values(prediction, y, seed=3))
    assert (first != pit_values(prediction, y, seed=4)).any()


@pytest.mark.parametrize("kind", CALIBRATED)
def test_histogram_of_a_calibrated_prediction_is_flat(kind):
    histogram = pit_histogram(*CALIBRATED[kind], bins=8)
    assert histogram.counts.sum() == ROWS
    np.testing.assert_array_equal(histogram.edges, np.linspace(0.0, 1.0, 9))
    standard_error = np.sqrt(8 * (1 - 1 / 8) / ROWS)
    assert np.max(np.abs(histogram.density - 1.0)) < 4.0 * standard_error


@pytest.mark.parametrize("kind", CALIBRATED)
def test_a_calibrated_prediction_has_the_expected_shares(kind):
    curve = calibration_curve(*CALIBRATED[kind])
    standard_error = np.sqrt(curve.expected * (1.0 - curve.expected) / ROWS)
    assert np.all(np.abs(curve.observed - curve.expected) < 4.0 * standard_error)


def test_error_is_the_mean_square_over_levels():
    uniform = Mixture(stats.uniform(np.zeros((1, 4, 1))))
    y = [0.1, 0.2, 0.3, 0.9]
    # 1/4 of the targets are at most 0.1, and 3/4 at most 0.5.
    assert calibration_error(uniform, y, [0.1, 0.5]) == pytest.approx(
        ((0.25 - 0.1) ** 2 + (0.75 - 0.5) ** 2) / 2
    )


@pytest.mark.parametrize("levels", [[], [0.0, 0.5], [1.0], [[0.5]], [float("nan")]])
def test_levels_must_be_between_0_and_1(levels):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        calibration_curve(*CALIBRATED["numbers"], levels)


def test_classes_without_an_order_are_refused():
    prediction = classes()
    with pytest.raises(ValueError, match="no order"):
        pit_values(prediction, labels(prediction))
