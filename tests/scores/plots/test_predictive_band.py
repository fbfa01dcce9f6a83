import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

from tests.scores.metrics.known_predictions import Classes
from tests.scores.plots.normal_prediction import NormalPrediction
from tfbbb.scores.plots import predictive_band

X = np.array([2.0, 0.0, 1.0])
MEAN = np.array([[4.0], [0.0], [1.0]])
EPISTEMIC = np.array([[9.0], [0.0], [1.0]])
ALEATORIC = np.array([[16.0], [4.0], [1.0]])
PREDICTION = NormalPrediction(MEAN, EPISTEMIC, ALEATORIC)


def band(collection):
    """Returns lower and upper ends of what `fill_between` filled, by input."""
    vertices = collection.get_paths()[0].vertices
    ends = {x: [] for x in np.unique(vertices[:, 0])}
    for x, y in vertices:
        ends[x].append(y)
    return np.array([(min(y), max(y)) for y in ends.values()])


def test_bands_of_a_normal_are_as_wide_as_its_deviations():
    axes = predictive_band(PREDICTION, X, level=0.8, axes=Figure().subplots())
    outer, inner = (band(collection) for collection in axes.collections)
    order = [1, 2, 0]
    for ends, variance in ((outer, EPISTEMIC + ALEATORIC), (inner, EPISTEMIC)):
        half = stats.norm.ppf(0.9) * np.sqrt(variance[order])
        np.testing.assert_allclose(ends, MEAN[order] + half * [-1, 1], rtol=1e-12)
    assert axes.lines[0].get_xdata().tolist() == [0.0, 1.0, 2.0]
    assert axes.lines[0].get_ydata().tolist() == [0.0, 1.0, 4.0]


class Skewed(NormalPrediction):
    """As wide as it says, but exponential: its mean is above its median."""

    def quantile(self, p):
        levels = np.reshape(p, (-1, 1))
        return self.mean[:, None] * -np.log1p(-levels)


def test_the_inner_band_of_a_skewed_target_is_inside():
    mean = np.array([[1.0], [2.0]])
    prediction = Skewed(mean, 0.9 * mean**2, 0.1 * mean**2)
    x = [0.0, 1.0]
    axes = predictive_band(prediction, x, axes=Figure().subplots())
    outer, inner = (band(collection) for collection in axes.collections)
    assert (outer[:, 0] > 0.0).all()
    assert (outer[:, 0] < inner[:, 0]).all()
    assert (inner[:, 1] < outer[:, 1]).all()
    np.testing.assert_allclose(axes.lines[0].get_ydata(), np.log(2.0) * mean[:, 0])


def test_data_are_dots_of_the_chosen_target():
    twice = NormalPrediction(
        np.hstack([MEAN, MEAN + 1]), np.ones((3, 2)), np.ones((3, 2))
    )
    data = (np.array([[0.5], [1.5]]), np.array([[7.0, 8.0], [9.0, 10.0]]))
    axes = predictive_band(twice, X, data=data, target=1, axes=Figure().subplots())
    assert axes.collections[-1].get_offsets().tolist() == [[0.5, 8.0], [1.5, 10.0]]
    assert axes.lines[0].get_ydata().tolist() == [1.0, 2.0, 5.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 1.0}, "`level` is a probability and must lie strictly"),
        ({"target": 1}, "`target` must be the index of one of 1 targets"),
        ({"x": [1.0, 2.0]}, "Received: lengths {'prediction': 3, 'x': 2}"),
        ({"x": np.ones((3, 2))}, "`x` must be an array of shape"),
        ({"data": [1.0, 2.0]}, "`data` must be a tuple of inputs and targets"),
        ({"data": ([1.0], [1.0, 2.0])}, "lengths {'inputs': 1, 'targets': 2}"),
        ({"prediction": Classes(np.eye(3)[np.newaxis])}, "Classes have no mean"),
        ({"prediction": MEAN}, "Received: prediction of type ndarray"),
    ],
)
def test_invalid_arguments_are_refused(options, message):
    given = {"prediction": PREDICTION, "x": X, "axes": Figure().subplots()}
    with pytest.raises(ValueError, match=re.escape(message)):
        predictive_band(**{**given, **options})
