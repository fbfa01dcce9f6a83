import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from tests.scores.plots.normal_prediction import NormalPrediction
from tfbbb.scores.plots import intervals

MEAN = np.array([[3.0], [1.0], [2.0]])
PREDICTION = NormalPrediction(MEAN, 0.0 * MEAN, np.ones_like(MEAN))
TRUTH = np.array([3.5, 1.5, 9.0])
# A normal lies within a standard deviation with probability 0.6827.
ONE_DEVIATION = 0.6827


def bars(axes):
    return [segment[:, 1].tolist() for segment in axes.collections[0].get_segments()]


def test_rows_are_sorted_by_mean_and_misses_coloured():
    axes = intervals(PREDICTION, TRUTH, level=ONE_DEVIATION, axes=Figure().subplots())
    _, inside, outside = axes.collections
    np.testing.assert_allclose(bars(axes), [[0, 2], [1, 3], [2, 4]], atol=1e-4)
    assert axes.lines[0].get_ydata().tolist() == [1.0, 2.0, 3.0]
    assert inside.get_offsets().tolist() == [[1.0, 1.5], [3.0, 3.5]]
    assert outside.get_offsets().tolist() == [[2.0, 9.0]]
    assert to_hex(inside.get_facecolor()[0]) != to_hex(outside.get_facecolor()[0])


def test_intervals_use_the_level_and_the_target():
    mean = np.array([[0.0, 10.0], [1.0, 30.0]])
    prediction = NormalPrediction(mean, 0.0 * mean, np.ones_like(mean))
    options = {"level": ONE_DEVIATION, "target": 1}
    axes = intervals(prediction, mean, **options, axes=Figure().subplots())
    np.testing.assert_allclose(bars(axes), [[9.0, 11.0], [29.0, 31.0]], atol=1e-3)
