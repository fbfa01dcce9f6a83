import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import average_precision_score, roc_auc_score

from tests.scores.metrics.known_predictions import (
    Classes,
    Mixture,
    classes,
    labels,
    normals,
    values,
)
from tfbbb.scores.metrics import (
    out_of_distribution_aupr,
    out_of_distribution_auroc,
    risk_coverage_curve,
)


def joined(inside, outside):
    """Returns one prediction of the rows of both, and its marks."""
    both = Classes(np.concatenate([inside.of_draws, outside.of_draws], axis=1))
    return both, np.repeat([0, 1], [len(inside.mean), len(outside.mean)])


INSIDE, OUTSIDE = classes(rows=80), classes(rows=60, seed=5)
OUTSIDE = Classes(0.7 * OUTSIDE.of_draws + 0.3 / 4)


@pytest.mark.parametrize("by", ["entropy", "mutual_information"])
def test_areas_equal_those_of_scikit_learn(by):
    both, marks = joined(INSIDE, OUTSIDE)
    scores = getattr(both, by)
    assert out_of_distribution_auroc(INSIDE, OUTSIDE, by=by) == pytest.approx(
        roc_auc_score(marks, scores)
    )
    assert out_of_distribution_aupr(INSIDE, OUTSIDE, by=by) == pytest.approx(
        average_precision_score(marks, scores)
    )


def test_uninformative_uncertainty_has_half_the_area():
    assert out_of_distribution_auroc(INSIDE, INSIDE) == 0.5
    assert out_of_distribution_aupr(INSIDE, INSIDE) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_unit_of_a_variance_does_not_matter(unit):
    locations = unit * np.random.default_rng(0).normal(size=(5, 40, 2))
    inside = Mixture(stats.norm(locations, unit))
    outside = Mixture(stats.norm(1.5 * locations, unit))
    expected = roc_auc_score(
        np.repeat([0, 1], 40),
        np.concatenate([inside.epistemic, outside.epistemic]).sum(axis=1),
    )
    assert out_of_distribution_auroc(inside, outside) == pytest.approx(expected)


def test_risk_is_the_mean_loss_of_the_most_certain_rows():
    prediction = classes()
    y = labels(prediction)
    wrong = prediction.probabilities.argmax(axis=1) != y
    order = np.argsort(prediction.entropy)
    curve = risk_coverage_curve(prediction, y)
    np.testing.assert_allclose(curve.coverage, np.arange(1, 51) / 50)
    brute = [wrong[order[:i]].mean() for i in range(1, 51)]
    np.testing.assert_allclose(curve.risk, brute)
    assert curve.area == pytest.approx(np.mean(brute))


def test_risk_of_numbers_is_the_squared_error():
    prediction = normals(targets=2)
    y = values(normals(targets=2))
    losses = np.square(prediction.mean - y).mean(axis=1)
    order = np.argsort(prediction.epistemic.sum(axis=1))
    curve = risk_coverage_curve(prediction, y, by="epistemic")
    np.testing.assert_allclose(curve.risk, np.cumsum(losses[order]) / np.arange(1, 51))


def test_rows_of_equal_uncertainty_are_in_random_order():
    prediction = Mixture(stats.norm(np.zeros((2, 3, 1)), 1.0))
    curve = risk_coverage_curve(prediction, [0.0, 3.0, 0.0])
    np.testing.assert_allclose(curve.risk, [3.0, 3.0, 3.0])


def test_unknown_uncertainties_are_refused():
    with pytest.raises(ValueError, match="Received: by='surprise'"):
        out_of_distribution_auroc(INSIDE, OUTSIDE, by="surprise")
    with pytest.raises(ValueError, match="Received: by='surprise'"):
        risk_coverage_curve(INSIDE, labels(INSIDE), by="surprise")


def test_entropy_is_refused_for_numbers():
    with pytest.raises(ValueError, match="Received: by='entropy'"):
        out_of_distribution_auroc(normals(), normals(), by="entropy")


def test_predictions_of_different_kinds_are_refused():
    with pytest.raises(ValueError, match="from the same model"):
        out_of_distribution_auroc(INSIDE, normals())
