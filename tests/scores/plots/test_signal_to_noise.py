import keras
import numpy as np
import pytest
from matplotlib.figure import Figure

from tfbbb import compression
from tfbbb.layers import DenseVariational
from tfbbb.scores.plots import signal_to_noise


def heights(axes):
    """Returns the histogram of each layer, as high as it is drawn."""
    return [
        patch.get_data().baseline - patch.get_data().values for patch in axes.patches
    ]


def names(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def test_histograms_count_decibels():
    ratios = {"a": np.array([0.1, 1.0, 1.0, 10.0]), "b": np.array([10.0])}
    axes = signal_to_noise(ratios, bins=2, axes=Figure().subplots())
    # From -10 to 10 dB in two bins, each histogram as high as the other.
    one, other = heights(axes)
    assert axes.patches[0].get_data().edges.tolist() == [-10.0, 0.0, 10.0]
    assert one[0] / one[1] == pytest.approx(1 / 3)
    assert other[0] == 0.0
    assert one.max() == pytest.approx(other.max())


def test_medians_are_marked():
    ratios = {"a": [1.0, 10.0, 100.0], "b": [0.1]}
    axes = signal_to_noise(ratios, axes=Figure().subplots())
    marks = [segment[0, 0] for segment in axes.collections[0].get_segments()]
    np.testing.assert_allclose(marks, [10.0, -10.0])


def test_layers_are_plotted_in_the_order_of_the_model():
    model = keras.Sequential(
        [
            keras.Input((3,)),
            DenseVariational(4, name="hidden"),
            DenseVariational(1, name="output"),
        ]
    )
    axes = signal_to_noise(model, axes=Figure().subplots())
    # Keras' biases start at exactly 0.
    assert names(axes) == [
        "hidden\n16 weights, 25 % are 0",
        "output\n5 weights, 20 % are 0",
    ]
    bottom, top = axes.get_ylim()
    assert bottom > top
    kernel = compression.signal_to_noise(model.layers[0].kernel)
    marks = [segment[0, 0] for segment in axes.collections[0].get_segments()]
    assert marks[0] == pytest.approx(np.median(10 * np.log10(kernel)))


def test_weights_off_the_axis_are_noted():
    ratios = {"a": [0.0, 0.0, np.inf, 1.0], "b": np.zeros(3)}
    axes = signal_to_noise(ratios, axes=Figure().subplots())
    assert names(axes) == [
        "a\n4 weights, 50 % are 0, 25 % known exactly",
        "b\n3 weights, 100 % are 0",
    ]
    assert len(axes.patches) == 1


def test_a_single_mean_near_0_does_not_stretch_the_axis():
    ratios = {"a": np.concatenate([np.full(5000, 2.0), np.full(5000, 1.0), [1e-30]])}
    axes = signal_to_noise(ratios, axes=Figure().subplots())
    assert axes.get_xlim()[0] > -1.0


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({}, "at least one layer, and weights"),
        ({"a": [], "b": [1.0]}, "numbers of weights {'a': 0, 'b': 1}"),
        (keras.Sequential([keras.layers.Dense(1)]), "and weights in each layer"),
        ({"a": [-1.0, 2.0, np.nan]}, "Received: 2 that are, or are NaN"),
        ({"a": [0.0, np.inf]}, "every weight is exactly 0 or known exactly"),
    ],
)
def test_a_model_without_ratios_is_refused(model, message):
    with pytest.raises(ValueError, match=message):
        signal_to_noise(model, axes=Figure().subplots())


def test_bins_must_be_a_positive_integer():
    with pytest.raises(ValueError, match="`bins` must be a positive integer"):
        signal_to_noise({"a": [1.0]}, bins=0, axes=Figure().subplots())
