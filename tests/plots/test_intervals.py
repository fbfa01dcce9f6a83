import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from tfbbb.plots import intervals

MEAN = np.array([3.0, 1.0, 2.0])
LOWER = MEAN - 1
UPPER = MEAN + 1
TRUTH = np.array([3.5, 1.5, 9.0])


def test_rows_are_in_the_order_of_their_means_and_misses_stand_out():
    axes = intervals(TRUTH, MEAN, LOWER, UPPER, axes=Figure().subplots())
    lines, inside, outside = axes.collections
    bars = [segment[:, 1].tolist() for segment in lines.get_segments()]
    assert bars == [[0.0, 2.0], [1.0, 3.0], [2.0, 4.0]]
    assert axes.lines[0].get_ydata().tolist() == [1.0, 2.0, 3.0]
    assert inside.get_offsets().tolist() == [[1.0, 1.5], [3.0, 3.5]]
    assert outside.get_offsets().tolist() == [[2.0, 9.0]]
    assert to_hex(inside.get_facecolor()[0]) != to_hex(outside.get_facecolor()[0])


def test_the_legend_names_the_level_and_counts_the_truths():
    axes = intervals(TRUTH, MEAN, LOWER, UPPER, level=0.8, axes=Figure().subplots())
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts[1:] == ["80 % interval", "truth inside (2)", "truth outside (1)"]


def test_a_figure_is_made_where_none_is_given():
    axes = intervals(TRUTH, MEAN, LOWER, UPPER, label="metres")
    assert axes.get_ylabel() == "metres"
    matplotlib.pyplot.close(axes.figure)


@pytest.mark.parametrize("mean", [MEAN[:2], MEAN[:, None], 1.0])
def test_arrays_of_other_shapes_are_refused(mean):
    with pytest.raises(ValueError, match="Received: shapes"):
        intervals(TRUTH, mean, LOWER, UPPER, axes=Figure().subplots())


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="Received: shapes"):
        intervals([], [], [], [], axes=Figure().subplots())
