"""A question of the table is answered by live models, SavedModels and loaded models."""

from pathlib import Path

import keras
import numpy as np
import pytest
from scipy import stats

import tfbbb
from tfbbb.export import answer_functions, saved_answers
from tfbbb.prediction import live_answers
from tfbbb.prediction.questions import QUESTIONS, Question
from tfbbb.recalibration import Recalibration

X = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_every_question_has_an_answer_by_a_recalibration(question: Question) -> None:
    assert question.compute is not None or hasattr(Recalibration, question.name)


def test_file_without_the_question_says_so() -> None:
    likelihood = tfbbb.likelihoods.Normal()
    likelihood.build((None, 1))
    answers = live_answers.live_answers(likelihood, Recalibration())
    with pytest.raises(ValueError, match=r"older tfbbb.*question='density'"):
        answers.ask("density", None)


def test_one_entry_adds_a_question(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    density = Question(
        "density",
        ("values",),
        compute=lambda recalibration, mixture, values: mixture.prob(values),
    )
    for module in (live_answers, answer_functions, saved_answers):
        monkeypatch.setattr(module, "QUESTIONS", (*QUESTIONS, density))
    inputs = keras.Input((3,))
    outputs = tfbbb.layers.DenseVariational(1)(inputs)
    likelihood = tfbbb.likelihoods.Normal(scale=0.5)
    live = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    live.export_predictive(tmp_path / "1")
    loaded = tfbbb.load(tmp_path / "1")
    values = np.full((5, 1), 0.3)
    densities = [
        prediction._ask("density", values)
        for prediction in (live.predictive(X), loaded.predictive(X))
    ]
    prediction = live.predictive(X)
    # The mean of the only layer is integrated, so that all draws are one normal.
    expected = stats.norm(prediction.mean, prediction.stddev).pdf(values)
    np.testing.assert_allclose(densities[0], expected, rtol=1e-5)
    np.testing.assert_allclose(densities[1], expected, rtol=1e-5)
