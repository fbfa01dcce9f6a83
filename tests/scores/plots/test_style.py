import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

from tests.scores.plots.normal_prediction import (
    NormalPrediction,
    UniformPrediction,
    measured,
)
from tfbbb import plots

X = np.linspace(-1.0, 1.0, 30)
MEAN = np.sin(X)[:, np.newaxis]
NORMAL = NormalPrediction(MEAN, 0.04 + 0.1 * MEAN**2, np.full_like(MEAN, 0.09))
Y = MEAN + NORMAL.stddev * np.random.default_rng(0).normal(size=MEAN.shape)
HISTORY = {
    "nll": 1.0 + np.exp(-X),
    "loss": 2.0 + np.exp(-X),
    "val_nll": 1.1 + np.exp(-X),
    "temperature": np.minimum(X + 1.0, 1.0),
}
# A picture of each plot.
PICTURES = {
    "calibration_curve": lambda axes: plots.calibration_curve(NORMAL, Y, axes=axes),
    "elbo_curve": lambda axes: plots.elbo_curve(HISTORY, axes=axes),
    "intervals": lambda axes: plots.intervals(NORMAL, Y, axes=axes),
    "pit_histogram": lambda axes: plots.pit_histogram(NORMAL, Y, axes=axes),
    "predictive_band": lambda axes: plots.predictive_band(
        NORMAL, X, data=(X, Y), axes=axes
    ),
    "reliability_diagram": lambda axes: plots.reliability_diagram(
        *measured([5, 50, 40], [0.4, 0.6, 0.9], [2, 30, 30]), bins=10, axes=axes
    ),
    "risk_coverage": lambda axes: plots.risk_coverage(
        NORMAL, Y, by=["variance", "epistemic"], axes=axes
    ),
}


def test_every_plot_has_a_picture():
    assert sorted(PICTURES) == sorted(plots.__all__)


@pytest.mark.parametrize("name", PICTURES)
def test_a_plot_draws_and_labels_only_the_given_axes(name, monkeypatch):
    monkeypatch.setattr(pyplot, "subplots", None)
    settings = dict(matplotlib.rcParams)
    given = Figure().subplots()
    given.plot([0.0, 1.0], [0.0, 1.0], label="another")
    returned = []
    draw = getattr(plots, name)
    monkeypatch.setattr(plots, name, lambda *a, **k: returned.append(draw(*a, **k)))
    PICTURES[name](given)
    assert returned == [given]
    assert not pyplot.get_fignums()
    assert dict(matplotlib.rcParams) == settings
    assert given.lines[0].get_label() == "another"
    assert given.get_xlabel()
    assert given.get_ylabel()
    assert given.get_legend().get_texts()
    # Over its own picture too.
    PICTURES[name](given)


def test_a_figure_is_created_without_axes():
    axes = plots.pit_histogram(UniformPrediction(2), [0.2, 0.7])
    assert pyplot.get_fignums() == [axes.figure.number]
    pyplot.close(axes.figure)


def test_an_invalid_argument_leaves_no_figure():
    with pytest.raises(ValueError, match="positive integer"):
        plots.pit_histogram(UniformPrediction(2), [0.2, 0.7], bins=0)
    assert not pyplot.get_fignums()


@pytest.mark.parametrize("axes", [Figure(), "axes", 1])
def test_invalid_axes_are_refused(axes):
    with pytest.raises(TypeError, match="`axes` must be Matplotlib axes"):
        plots.pit_histogram(UniformPrediction(2), [0.2, 0.7], axes=axes)


def test_legends_leave_the_data_free():
    figure = Figure(figsize=(8, 4.5))
    axes = figure.subplots()
    plots.pit_histogram(UniformPrediction(50), np.full(50, 0.95), axes=axes)
    figure.canvas.draw()
    legend = axes.get_legend().get_window_extent()
    assert all(bar.get_window_extent().y1 <= legend.y0 for bar in axes.patches[1:])
