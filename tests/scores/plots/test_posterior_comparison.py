import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.scores.plots.normal_prediction import NormalPrediction
from tfbbb.scores.plots import posterior_comparison

X = np.array([2.0, 0.0, 1.0])
PREDICTION = NormalPrediction(
    mean=X[:, None], epistemic=np.full((3, 1), 0.75), aleatoric=np.full((3, 1), 0.25)
)


def test_a_distribution_has_a_band_and_a_point_estimate_none():
    axes = posterior_comparison(
        {"fit": 2.0 * X, "Bayes": PREDICTION}, X, axes=Figure().subplots()
    )
    (band,) = axes.collections
    fit, bayes = axes.lines
    assert fit.get_ydata().tolist() == [0.0, 2.0, 4.0]
    assert bayes.get_ydata().tolist() == [0.0, 1.0, 2.0]
    heights = band.get_paths()[0].vertices[:, 1]
    # 90 % of a normal of variance 1.
    assert heights.max() == pytest.approx(2.0 + 1.645, abs=1e-3)
    assert heights.min() == pytest.approx(-1.645, abs=1e-3)


@pytest.mark.parametrize(
    ("predictions", "options", "message"),
    [
        ({}, {}, "1 to 6 predictions"),
        ({"fit": [1.0, 2.0]}, {}, "one value for each row"),
        ({"Bayes": PREDICTION}, {"level": 0.0}, "`level` must be"),
        ({"Bayes": PREDICTION}, {"target": 1}, "the index of one of 1 targets"),
        ({"fit": X}, {"truth": [1.0]}, "one value for each row"),
        ({"fit": X}, {"data": (X, X[:2])}, "one value for each row"),
    ],
)
def test_what_cannot_be_drawn_is_refused(predictions, options, message):
    with pytest.raises(ValueError, match=message):
        posterior_comparison(predictions, X, **options, axes=Figure().subplots())
