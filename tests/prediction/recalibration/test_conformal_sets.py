import types

import numpy as np
import pytest
from scipy import stats

import tfbbb
from tests.prediction.recalibration.known_models import (
    DRAWS,
    FRESH,
    DrawnModel,
    X,
    drawn,
)
from tfbbb.prediction.answers import Answers, more_probable
from tfbbb.prediction.recalibration import ConformalSets, Temperature
from tfbbb.prediction.recalibration.recalibration import IDENTITY

CLASSES = 5
LIKELIHOOD = tfbbb.likelihoods.Categorical()
LIKELIHOOD.build((None, CLASSES))


def probabilities(generator, rows, classes=CLASSES):
    """What a model predicts, and what is true: the model is too certain."""
    true = generator.dirichlet(np.full(classes, 0.7), size=rows)
    sharpened = true**2.5
    return sharpened / sharpened.sum(axis=1, keepdims=True), true


def labels(generator, true):
    return (generator.uniform(size=(len(true), 1)) > np.cumsum(true, axis=1)).sum(1)


def answer(fitted, predicted, level):
    answers = Answers(LIKELIHOOD, IDENTITY if fitted is None else fitted)
    sets = answers.prediction_sets({"probabilities": predicted}, None, [level])
    return sets[:, 0]


@pytest.mark.few(1)
@pytest.mark.parametrize(("rows", "level"), [(19, 0.9), (40, 0.83), (60, 0.95)])
def test_sets_of_exchangeable_rows_cover_the_level(rows, level):
    generator = np.random.default_rng(0)
    coverage, without = [], []
    for _ in range(400):
        predicted, true = probabilities(generator, rows + 100)
        y = labels(generator, true)
        known = types.SimpleNamespace(probabilities=predicted[:rows])
        fitted = ConformalSets().fitted(LIKELIHOOD, known, y[:rows])
        new, of_new = predicted[rows:], true[rows:]
        # The probability of each new row's class, given the model's prediction.
        coverage.append(np.mean((answer(fitted, new, level) * of_new).sum(axis=1)))
        without.append(np.mean((answer(None, new, level) * of_new).sum(axis=1)))
    error = stats.sem(coverage)
    # Without ties of scores, rank j of n + 1 is the coverage; ties only add to it.
    exact = np.ceil((rows + 1) * level - 1e-6) / (rows + 1)
    assert exact - 4 * error < np.mean(coverage) < exact + 0.02 + 4 * error
    assert np.mean(without) < level - 0.03


def test_sets_are_the_most_probable_classes_up_to_the_level():
    predicted = np.array([[0.5, 0.3, 0.15, 0.05], [0.05, 0.92, 0.02, 0.01]])
    np.testing.assert_array_equal(
        answer(None, predicted, 0.9),
        [[True, True, True, False], [False, True, False, False]],
    )
    # More than 0.5 + 0.3 is more probable than the third class.
    fitted = ConformalSets([[0.0, 0.5, 0.8]])
    np.testing.assert_array_equal(
        answer(fitted, predicted, 0.5),
        [[True, True, False, False], [False, True, False, False]],
    )


def test_of_equal_probabilities_the_first_counts_as_more_probable():
    np.testing.assert_allclose(more_probable([[0.25, 0.5, 0.25]]), [[0.5, 0, 0.75]])


def test_temperature_and_sets_hold_together():
    model = DrawnModel(3, "categorical", spread=1.0)
    y = drawn(model, X)
    method = ConformalSets(density=Temperature())
    # The targets are those of the model.
    fitted = model.recalibrate(X, y, method, num_samples=DRAWS)
    assert fitted.density.temperature == pytest.approx(1.0, abs=0.15)
    prediction = model.predictive(FRESH, num_samples=DRAWS)
    plain = DrawnModel(3, "categorical", spread=1.0)
    plain.recalibration = fitted.density
    np.testing.assert_allclose(
        prediction.probabilities,
        plain.predictive(FRESH, num_samples=DRAWS).probabilities,
        rtol=1e-6,
    )
    fresh = drawn(DrawnModel(3, "categorical", spread=1.0), FRESH, seed=1)
    covered = np.take_along_axis(prediction.prediction_set(0.8), fresh[:, None], 1)
    # Sampling error of the held-out rows and of the fresh ones.
    assert covered.mean() == pytest.approx(0.8, abs=4 * np.sqrt(2 * 0.16 / 2000))


def test_numbers_have_no_prediction_sets():
    with pytest.raises(ValueError, match="Only classes have prediction sets"):
        DrawnModel().predictive(X[:3]).prediction_set(0.9)
