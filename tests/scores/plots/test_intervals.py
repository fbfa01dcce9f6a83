import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from tests.scores.plots.class_prediction import ClassPrediction
from tests.scores.plots.normal_prediction import NormalPrediction
from tfbbb.scores.plots import intervals

MEAN = np.array([3.0, 1.0, 2.0])
BOUNDS = (MEAN, MEAN - 1, MEAN + 1)
TRUTH = np.array([3.5, 1.5, 9.0])


def bars(axes):
    return [segment[:, 1].tolist() for segment in axes.collections[0].get_segments()]


def test_rows_are_sorted_by_mean_and_misses_coloured():
    axes = intervals(BOUNDS, TRUTH, axes=Figure().subplots())
    _, inside, outside = axes.collections
    assert bars(axes) == [[0.0, 2.0], [1.0, 3.0], [2.0, 4.0]]
    assert axes.lines[0].get_ydata().tolist() == [1.0, 2.0, 3.0]
    assert inside.get_offsets().tolist() == [[1.0, 1.5], [3.0, 3.5]]
    assert outside.get_offsets().tolist() == [[2.0, 9.0]]
    assert to_hex(inside.get_facecolor()[0]) != to_hex(outside.get_facecolor()[0])


def test_intervals_use_the_level_and_the_target():
    mean = np.array([[0.0, 10.0], [1.0, 30.0]])
    prediction = NormalPrediction(mean, 0.0 * mean, np.ones_like(mean))
    axes = intervals(prediction, mean, level=0.6827, target=1, axes=Figure().subplots())
    # A normal lies within a standard deviation with probability 0.6827.
    np.testing.assert_allclose(bars(axes), [[9.0, 11.0], [29.0, 31.0]], atol=1e-3)


def test_the_legend_names_the_level_and_counts_the_truths():
    axes = intervals(BOUNDS, TRUTH, level=0.8, axes=Figure().subplots())
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts[1:] == ["80 % interval", "truth inside (2)", "truth outside (1)"]


@pytest.mark.parametrize("rows", [1, 5000])
def test_bars_of_few_and_many_rows_have_gaps(rows):
    mean = np.arange(float(rows))
    axes = intervals((mean, mean - 1, mean + 1), mean, axes=Figure().subplots())
    bar = axes.collections[0].get_linewidth()[0]
    assert axes.get_xlim() == (0.0, rows + 1.0)
    assert bar == (2.5 if rows == 1 else 0.3)


@pytest.mark.parametrize("mean", [MEAN[:2], [3.0]])
def test_arrays_of_other_lengths_are_refused(mean):
    with pytest.raises(ValueError, match="Received: lengths"):
        intervals((mean, *BOUNDS[1:]), TRUTH, axes=Figure().subplots())


@pytest.mark.parametrize("truth", [[], 1.0, np.ones((3, 2, 2))])
def test_true_values_of_other_shapes_are_refused(truth):
    with pytest.raises(ValueError, match="`y` must be an array of shape"):
        intervals(BOUNDS, truth, axes=Figure().subplots())


def test_numbers_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="Received: 1 of 3 that are not"):
        intervals(BOUNDS, [1.0, np.nan, 2.0], axes=Figure().subplots())


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, "0.9", float("nan")])
def test_a_level_must_be_a_probability(level):
    with pytest.raises(ValueError, match="`level` must be a number strictly between"):
        intervals(BOUNDS, TRUTH, level=level, axes=Figure().subplots())


@pytest.mark.parametrize("target", [1, -1, 0.0, True])
def test_a_target_must_be_an_index(target):
    column = MEAN[:, np.newaxis]
    prediction = NormalPrediction(column, column, column)
    with pytest.raises(ValueError, match="index of one of 1 targets"):
        intervals(prediction, TRUTH, target=target, axes=Figure().subplots())


def test_classes_are_refused():
    with pytest.raises(ValueError, match="Classes have no mean"):
        intervals(ClassPrediction(np.eye(3)), TRUTH, axes=Figure().subplots())


@pytest.mark.parametrize("prediction", [MEAN, BOUNDS[:2]])
def test_an_invalid_prediction_is_refused(prediction):
    with pytest.raises(ValueError, match="a tuple of means, lower and upper ends"):
        intervals(prediction, TRUTH, axes=Figure().subplots())
