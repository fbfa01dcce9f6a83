"""Figures of classes against scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from sklearn import metrics

from tfbbb.judging.evaluation import judge
from tfbbb.judging.evaluation.baseline import Baseline
from tfbbb.judging.evaluation.judgement import _areas
from tfbbb.judging.evaluation.predicted_rows import PredictedRows

ROWS = 300
RNG = np.random.default_rng(1)
TARGETS = RNG.choice(3, size=ROWS, p=[0.7, 0.2, 0.1])
LOGITS = RNG.normal(size=(ROWS, 3)) + 1.5 * np.eye(3)[TARGETS]
PROBABILITIES = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
ROWS_PREDICTED = PredictedRows(
    np.log(PROBABILITIES[np.arange(ROWS), TARGETS]), PROBABILITIES, of_classes=True
)


def test_figures_of_classes_are_those_of_scikit_learn():
    figures = judge({"model": ROWS_PREDICTED}, TARGETS)["figures"]["model"]
    predicted = PROBABILITIES.argmax(axis=1)
    assert figures["accuracy"] == pytest.approx(np.mean(predicted == TARGETS))
    assert figures["balanced_accuracy"] == pytest.approx(
        metrics.balanced_accuracy_score(TARGETS, predicted)
    )
    assert figures["auc"] == pytest.approx(
        metrics.roc_auc_score(TARGETS, PROBABILITIES, multi_class="ovr")
    )
    assert -figures["log_likelihood"] == pytest.approx(
        metrics.log_loss(TARGETS, PROBABILITIES)
    )
    assert 0 < figures["expected_calibration_error"] < 0.5


def test_better_probabilities_count_where_accuracy_is_equal():
    commonest = Baseline.constant(TARGETS, 3).predict(None, TARGETS)
    # The commonest class stays the most probable one in all rows.
    blend = 0.7 * commonest.probabilities + 0.3 * np.where(
        np.eye(3)[TARGETS] > 0, PROBABILITIES, 0.1
    )
    blend[:, 0] = np.maximum(blend[:, 0], blend[:, 1:].max(axis=1) + 0.01)
    blend /= blend.sum(axis=1, keepdims=True)
    log_prob = np.log(blend[np.arange(ROWS), TARGETS])
    model = PredictedRows(log_prob, blend, of_classes=True)
    judged = judge({"model": model, "commonest class": commonest}, TARGETS)
    assert judged["sentences"][0].startswith(
        "The model is no more accurate than the commonest class, but its probabilities "
        "are better by 0."
    )


def test_probabilities_that_are_worse_or_too_low_are_said():
    right = np.where(np.eye(3)[TARGETS] > 0, 0.98, 0.01)
    unsure = np.where(np.eye(3)[TARGETS] > 0, 0.8, 0.1)

    def rows(probabilities):
        log_prob = np.log(probabilities[np.arange(ROWS), TARGETS])
        return PredictedRows(log_prob, probabilities, of_classes=True)

    judged = judge({"model": rows(unsure), "logistic model": rows(right)}, TARGETS)
    said = (
        "The model is no better than a logistic model, and its probabilities are worse "
        "by 0.2 nats per row.",
        "The probability of the predicted class is off by 20 % on average: it is too "
        "low.",
    )
    assert tuple(judged["sentences"]) == tuple(judged["warnings"]) == said


def test_a_rare_class_is_learned_by_its_ranks():
    generator = np.random.default_rng(0)
    targets = np.repeat([0, 1], [1990, 10])
    # Neither accuracy nor two standard errors of the likelihood show it.
    rare = 1e-3 * np.exp(generator.normal(scale=0.2, size=2000) + 0.5 * targets)
    probabilities = np.stack([1.0 - rare, rare], axis=1)
    log_prob = np.log(probabilities[np.arange(2000), targets])
    model = PredictedRows(log_prob, probabilities, of_classes=True)
    constant = Baseline.constant(targets, 2).predict(None, targets)
    others = {"commonest class": constant}
    given = {"weights": None, "classes": ["ok", "fraud"]}
    judged = judge({"model": model, **others}, targets, **given)
    assert judged["learned"]
    assert (
        "Only 10 of 2000 rows are of class 'fraud', so accuracy says little. A row of "
        "it is ranked above another one with probability 0.9"
    ) in " ".join(judged["sentences"])
    # Ranks of chance, with the same errors.
    shuffled = generator.permutation(2000)
    model = replace(model, mean=probabilities[shuffled], tells_rows_apart=False)
    judged = judge({"model": model, **others}, targets, **given)
    assert not judged["learned"]
    assert "where chance has 0.5." in " ".join(judged["warnings"])


def test_the_error_of_the_auc_is_that_of_repeated_samples():
    generator = np.random.default_rng(0)
    found, errors = [], []
    for _ in range(300):
        targets = np.repeat([0, 1], [100, 20])
        scores = special.expit(generator.normal(size=120) + targets)
        rows = PredictedRows(
            np.zeros(120), np.stack([1 - scores, scores], axis=1), of_classes=True
        )
        (_, area, error) = _areas(rows, targets)[1]
        found.append(area)
        errors.append(error)
    # Of a standard deviation of 300 numbers; the formula assumes exponential scores.
    assert np.mean(errors) == pytest.approx(np.std(found), rel=4 / np.sqrt(600) + 0.05)
