import io

import numpy as np

from tests.judging.explain.known_model import Classes, Line
from tfbbb.judging.explain import explain, picture

RNG = np.random.default_rng(0)


def labels(figure):
    parts = [
        axes for part in figure.subfigs for axes in part.axes if axes.get_visible()
    ]
    return [axes.get_xlabel() for axes in parts]


def test_a_picture_has_importance_uncertainty_and_an_effect_per_column():
    x = RNG.normal(size=80)
    inputs = {"kind": RNG.choice(["a", "b$"], 80).astype(object), "x": x}
    found = explain(Line(), inputs, x[:, np.newaxis], target="y")
    figure = picture(found)
    assert labels(figure)[1:] == ["rows, by uncertainty (%)", "x", "kind"]
    importance, _ = figure.subfigs[0].axes
    (bar, longest) = importance.patches
    assert (bar.get_width(), longest.get_width()) == (0.0, found.importance[0].nats)
    line = figure.subfigs[1].axes[0].lines[0]
    np.testing.assert_array_equal(line.get_ydata(), found.effects[0].mean)
    figure.savefig(io.BytesIO(), format="svg")


def test_two_classes_have_the_curve_of_the_second():
    found = explain(Classes(), RNG.normal(size=(60, 1)), classes=("no", "yes"))
    figure = picture(found)
    assert labels(figure) == ["rows, by uncertainty (%)", "x1"]
    (curve,) = figure.subfigs[1].axes[0].lines
    assert curve.get_label() == "yes"
    assert set(np.round(curve.get_ydata(), 6)) == {0.2, 0.9}
