import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from tests.scores.plots.normal_prediction import measured
from tfbbb.scores.plots import reliability_diagram

MEASURED = measured([10, 40, 50], [0.4, 0.6, 0.9], [5, 24, 30])


def test_dots_are_at_the_accuracy_of_each_filled_bin():
    axes = reliability_diagram(*MEASURED, bins=4, axes=Figure().subplots())
    _, near, beyond = axes.collections
    np.testing.assert_allclose(near.get_offsets(), [[40, 50], [60, 60]])
    # 30 of 50 at a probability of 0.9 are five standard deviations off.
    np.testing.assert_allclose(beyond.get_offsets(), [[90, 60]])


def test_bars_hold_the_accuracy_of_a_calibrated_model():
    axes = reliability_diagram(
        *MEASURED, bins=4, confidence=0.8, axes=Figure().subplots()
    )
    bars = [segment[:, 1] for segment in axes.collections[0].get_segments()]
    expected = [
        100 * stats.binom.ppf([0.1, 0.9], n, p) / n
        for n, p in ((10, 0.4), (40, 0.6), (50, 0.9))
    ]
    np.testing.assert_allclose(bars, expected)


def test_the_strip_above_counts_the_rows():
    axes = reliability_diagram(*MEASURED, bins=4, axes=Figure().subplots())
    strip = axes.child_axes[0]
    assert [bar.get_height() for bar in strip.patches] == [0, 10, 40, 50]
    assert [bar.get_x() for bar in strip.patches] == [0, 25, 50, 75]
    assert strip.get_xlim() == axes.get_xlim()
