import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.scores.metrics.known_predictions import Classes
from tfbbb.scores.metrics import risk_coverage_curve
from tfbbb.scores.plots import risk_coverage


@pytest.fixture
def of_classes():
    """Returns a prediction of classes, and the true ones."""
    generator = np.random.default_rng(0)
    prediction = Classes(generator.dirichlet(np.ones(3), size=(4, 50)))
    return prediction, generator.integers(3, size=50)


def curves(axes):
    return {line.get_label().rsplit(" (")[0]: line.get_data() for line in axes.lines}


def test_curves_are_those_of_the_metric(of_classes):
    by = ["entropy", "mutual_information"]
    drawn = curves(risk_coverage(*of_classes, by=by, axes=Figure().subplots()))
    for name in by:
        curve = risk_coverage_curve(*of_classes, by=name)
        coverage, risk = drawn[name.replace("_", " ")]
        np.testing.assert_allclose(coverage, 100.0 * curve.coverage)
        np.testing.assert_array_equal(risk, curve.risk)


def test_no_order_of_the_rows_is_better_than_the_oracle(of_classes):
    axes = risk_coverage(*of_classes, axes=Figure().subplots())
    drawn = curves(axes)
    oracle, entropy = drawn["oracle"][1], drawn["entropy"][1]
    assert (oracle <= entropy + 1e-12).all()
    # The random order and all others end at the loss of all rows.
    assert drawn["random"][1] == [oracle[-1]] * 2
    assert oracle[-1] == pytest.approx(entropy[-1])


@pytest.mark.parametrize(
    ("rows", "by", "message"),
    [
        (50, [], "`by` must name 1 to 6 uncertainties"),
        (50, list("abcdefg"), "`by` must name 1 to 6 uncertainties"),
        (50, "doubt", "`by` must be one of 'entropy'"),
        (49, None, "Received: 49 targets"),
    ],
)
def test_invalid_arguments_are_refused(rows, by, message, of_classes):
    prediction, y = of_classes
    with pytest.raises(ValueError, match=message):
        risk_coverage(prediction, y[:rows], by=by, axes=Figure().subplots())
    with pytest.raises(ValueError, match="Received: prediction of type list"):
        risk_coverage([1.0], [1.0], axes=Figure().subplots())
