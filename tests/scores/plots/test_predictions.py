import keras
import numpy as np
import pytest
from matplotlib.figure import Figure

import tfbbb
from tfbbb import plots

ROWS = 12


def prediction_of(likelihood, units, shift=0.0):
    keras.utils.set_random_seed(0)
    inputs = keras.Input((2,))
    outputs = tfbbb.layers.DenseVariational(units)(inputs)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    x = shift + np.random.default_rng(0).normal(size=(ROWS, 2))
    return model.predictive(x, num_samples=20)


@pytest.fixture(scope="module")
def numbers():
    return prediction_of(tfbbb.likelihoods.Normal(), 2)


@pytest.fixture(scope="module")
def classes():
    return prediction_of(tfbbb.likelihoods.Categorical(), 3)


@pytest.fixture
def axes():
    return Figure().subplots()


def test_intervals_of_a_model_are_plotted(numbers, axes):
    plots.intervals(numbers, numbers.mean, target=1, axes=axes)
    order = np.argsort(numbers.mean[:, 1])
    ends = [segment[:, 1] for segment in axes.collections[0].get_segments()]
    expected = np.stack([bound[order, 1] for bound in numbers.interval(0.9)], axis=1)
    np.testing.assert_allclose(ends, expected)


def test_the_band_of_a_model_is_plotted(numbers, axes):
    x = np.arange(ROWS)
    plots.predictive_band(numbers, x, target=1, axes=axes)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), numbers.quantile(0.5)[:, 1])
    outer, inner = (np.ptp(c.get_paths()[0].vertices[:, 1]) for c in axes.collections)
    assert 0.0 < inner < outer


@pytest.mark.parametrize("draw", [plots.calibration_curve, plots.pit_histogram])
def test_medians_are_in_the_middle_of_their_distributions(draw, numbers, axes):
    draw(numbers, numbers.quantile(0.5), target=1, axes=axes)
    if draw is plots.pit_histogram:
        assert [bar.get_height() for bar in axes.patches[1:]] == [0, 0, ROWS, 0, 0]
    else:
        # Quantiles are inverted to 1e-6 or better: half a percent is beyond doubt.
        np.testing.assert_array_equal(axes.lines[1].get_ydata()[1:], 100.0)


def test_reliability_equals_the_accuracy_of_classes(classes, axes):
    y = classes.probabilities.argmax(axis=1)
    plots.reliability_diagram(classes, y, axes=axes)
    dots = np.concatenate([dots.get_offsets() for dots in axes.collections[1:]])
    np.testing.assert_array_equal(dots[:, 1], 100.0)
    assert sum(bar.get_height() for bar in axes.child_axes[0].patches) == ROWS


def test_risks_equal_those_of_the_metric(classes, axes):
    y = np.arange(ROWS) % 3
    by = ["entropy", "mutual_information", "epistemic"]
    plots.risk_coverage(classes, y, by=by, axes=axes)
    for line, name in zip(axes.lines[2:], by, strict=True):
        curve = tfbbb.metrics.risk_coverage_curve(classes, y, by=name)
        np.testing.assert_array_equal(line.get_ydata(), curve.risk)


@pytest.mark.parametrize("by", ["entropy", "mutual_information", "epistemic"])
def test_the_auroc_equals_that_of_the_metric(by, classes, axes):
    outside = prediction_of(tfbbb.likelihoods.Categorical(), 3, shift=5.0)
    plots.out_of_distribution(classes, outside, by=by, axes=axes)
    auroc = tfbbb.metrics.out_of_distribution_auroc(classes, outside, by=by)
    assert axes.get_legend().get_title().get_text() == f"AUROC {auroc:.3f}"
