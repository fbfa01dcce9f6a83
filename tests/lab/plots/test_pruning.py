import numpy as np
import pytest
from matplotlib.figure import Figure

from tfbbb.lab.compression import PruningCurve
from tfbbb.lab.plots import pruning_curve

CURVE = PruningCurve(np.array([0.0, 0.5, 0.9]), np.array([-1.0, -1.1, -3.0]))
LATER = PruningCurve(np.array([0.5, 0.9]), np.array([-1.5, -2.0]))
OTHER = PruningCurve(np.array([0.0, 0.9]), np.array([-1.2, -2.0]))


def texts(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_a_curve_is_plotted_in_percent_with_its_baseline():
    axes = pruning_curve(CURVE, label="nats", axes=Figure().subplots())
    whole, curve = axes.lines
    assert whole.get_ydata() == [-1.0, -1.0]
    assert curve.get_xdata().tolist() == [0.0, 50.0, 90.0]
    assert curve.get_ydata().tolist() == [-1.0, -1.1, -3.0]
    assert axes.get_ylabel() == "nats"
    assert texts(axes) == ["none removed"]


def test_several_curves_have_names_and_colours():
    axes = pruning_curve({"one": CURVE, "two": LATER}, axes=Figure().subplots())
    assert texts(axes) == ["none removed", "one", "two"]
    assert axes.lines[1].get_color() != axes.lines[2].get_color()


@pytest.mark.parametrize("curves", [LATER, {"one": CURVE, "two": OTHER}])
def test_curves_without_a_common_start_have_no_baseline(curves):
    axes = pruning_curve(curves, axes=Figure().subplots())
    assert len(axes.lines) == (1 if curves is LATER else 2)


@pytest.mark.parametrize(
    ("curves", "message"),
    [
        ({}, "There must be 1 to 6 curves. Received: 0"),
        ({str(n): CURVE for n in range(7)}, "There must be 1 to 6 curves. Received: 7"),
        ([CURVE], "must be what `tfbbb.lab.compression.pruning_curve` returns"),
        (PruningCurve(np.array([]), np.array([])), "`shares` must be an array of"),
        (PruningCurve(np.array([0.5]), np.array([np.nan])), "that are not"),
        (PruningCurve(np.array([0.5]), np.array([1.0, 2.0])), "Received: lengths"),
    ],
)
def test_an_invalid_curve_is_refused(curves, message):
    with pytest.raises(ValueError, match=message):
        pruning_curve(curves, axes=Figure().subplots())
