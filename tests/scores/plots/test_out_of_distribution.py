import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.scores.plots.class_prediction import ClassPrediction
from tests.scores.plots.normal_prediction import NormalPrediction
from tfbbb.scores.plots import out_of_distribution


@pytest.fixture
def scores():
    generator = np.random.default_rng(0)
    return generator.gamma(1.0, size=60), generator.gamma(3.0, size=40)


def drawn(axes):
    """Returns the shares and edges of both histograms."""
    # Each is filled first and then outlined.
    values = [patch.get_data() for patch in axes.patches[1::2]]
    return [data.values for data in values], values[0].edges


def auroc(axes):
    return float(axes.get_legend().get_title().get_text().removeprefix("AUROC "))


def test_bars_are_the_shares_of_each_set_of_rows(scores):
    shares, edges = drawn(out_of_distribution(*scores, axes=Figure().subplots()))
    for share, values in zip(shares, scores, strict=True):
        np.testing.assert_allclose(
            share, 100 * np.histogram(values, edges)[0] / values.size
        )
        assert share.sum() == pytest.approx(100)


def test_the_title_of_the_legend_is_the_auroc(scores):
    inside, outside = scores
    pairs = outside[:, np.newaxis] > inside
    axes = out_of_distribution(inside, outside, axes=Figure().subplots())
    assert auroc(axes) == pytest.approx(pairs.mean(), abs=5e-4)


def test_ties_count_half():
    axes = out_of_distribution([1.0, 2.0], [2.0], axes=Figure().subplots())
    assert auroc(axes) == 0.75


def test_bins_on_a_logarithmic_axis_are_of_equal_ratio(scores):
    axes = out_of_distribution(*scores, log=True, bins=5, axes=Figure().subplots())
    _, edges = drawn(axes)
    np.testing.assert_allclose(np.diff(np.log(edges)), np.diff(np.log(edges))[0])
    assert edges[[0, -1]] == pytest.approx(
        [min(map(min, scores)), max(map(max, scores))]
    )
    assert axes.get_xscale() == "log"


@pytest.mark.parametrize(
    ("by", "inside", "outside", "label"),
    [
        (
            "entropy",
            ClassPrediction(np.array([[0.9, 0.1], [0.8, 0.2]])),
            ClassPrediction(np.array([[0.5, 0.5]])),
            "entropy of the predicted class (nats)",
        ),
        (
            "epistemic",
            NormalPrediction(np.ones((3, 1)), np.ones((3, 1)), 9 * np.ones((3, 1))),
            NormalPrediction(np.ones((3, 1)), 2 * np.ones((3, 1)), np.ones((3, 1))),
            "epistemic variance",
        ),
    ],
)
def test_predictions_are_scored_by_the_requested_uncertainty(
    by, inside, outside, label
):
    axes = out_of_distribution(inside, outside, by=by, axes=Figure().subplots())
    assert auroc(axes) == 1.0
    assert axes.get_xlabel() == label


def test_equal_scores_are_plotted():
    axes = out_of_distribution([0.3, 0.3], [0.3], axes=Figure().subplots())
    assert [share.max() for share in drawn(axes)[0]] == [100.0, 100.0]
    assert auroc(axes) == 0.5


@pytest.mark.parametrize(
    ("inside", "options", "message"),
    [
        ([], {}, "`inside` must be an array of shape"),
        ([np.inf], {}, "Received: 1 of 1 that are not"),
        ([0.0], {"log": True}, "positive scores only; pass `log=False`"),
        ([1.0], {"bins": 0}, "`bins` must be a positive integer"),
        (NormalPrediction(*np.ones((3, 4, 1))), {"by": "doubt"}, "`by` must be one of"),
        (NormalPrediction(*np.ones((3, 4, 1))), {"by": "entropy"}, "has no `entropy`"),
    ],
)
def test_invalid_arguments_are_refused(inside, options, message):
    with pytest.raises(ValueError, match=message):
        out_of_distribution(inside, [1.0], **options, axes=Figure().subplots())
