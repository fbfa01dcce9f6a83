import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.metrics import accuracy_score

from tests.scores.metrics.known_predictions import Classes
from tests.scores.plots.normal_prediction import NormalPrediction
from tfbbb.scores.plots import risk_coverage


@pytest.fixture
def of_classes():
    """Returns a prediction of classes, and the true ones."""
    generator = np.random.default_rng(0)
    prediction = Classes(generator.dirichlet(np.ones(3), size=(4, 50)))
    return prediction, generator.integers(3, size=50)


def curves(axes):
    return {line.get_label().rsplit(" (")[0]: line.get_data() for line in axes.lines}


def test_the_risk_is_the_error_rate_of_certain_rows(of_classes):
    prediction, y = of_classes
    by = ["entropy", "mutual_information"]
    drawn = curves(risk_coverage(prediction, y, by=by, axes=Figure().subplots()))
    predicted = prediction.probabilities.argmax(axis=1)
    for name in by:
        surest = np.argsort(getattr(prediction, name))
        coverage, risk = drawn[name.replace("_", " ")]
        np.testing.assert_allclose(coverage, 2.0 * np.arange(1, 51))
        expected = [
            1.0 - accuracy_score(y[surest[:n]], predicted[surest[:n]])
            for n in range(1, 51)
        ]
        np.testing.assert_allclose(risk, expected, atol=1e-12)


def test_no_order_of_the_rows_is_better_than_the_oracle(of_classes):
    axes = risk_coverage(*of_classes, axes=Figure().subplots())
    drawn = curves(axes)
    oracle, entropy = drawn["oracle"][1], drawn["entropy"][1]
    assert (oracle <= entropy + 1e-12).all()
    # The random order and all others end at the loss of all rows.
    assert drawn["random"][1] == [oracle[-1]] * 2
    assert oracle[-1] == pytest.approx(entropy[-1])


def test_rows_of_numbers_are_in_the_order_of_their_variances():
    mean = np.zeros((3, 2))
    variance = np.array([[5.0, 0.0], [1.0, 1.0], [2.0, 1.0]])
    prediction = NormalPrediction(mean, 0.0 * mean, variance)
    y = np.array([[3.0, 1.0], [0.0, 2.0], [1.0, 1.0]])
    axes = risk_coverage(prediction, y, axes=Figure().subplots())
    # Squared errors, averaged over the targets: 5, 2 and 1.
    np.testing.assert_allclose(curves(axes)["variance"][1], [2, 3 / 2, 8 / 3])
    np.testing.assert_allclose(curves(axes)["oracle"][1], [1, 3 / 2, 8 / 3])


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
