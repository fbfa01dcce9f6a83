"""A question of the table is answered by live models and loaded models."""

import keras
import numpy as np
import pytest
from scipy import stats

import tfbbb
from service.api.predictions.schemas import row_model
from service.predicting import query
from service.predicting.query import parameters_model
from tests.served_answer import served_answer
from tfbbb.prediction import questions
from tfbbb.prediction.answers import Answers
from tfbbb.prediction.questions import QUESTIONS, Question
from tfbbb.prediction.recalibration import Recalibration

X = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
DENSITY = Question(
    "density",
    "densities",
    shape=("numbers",),
    arguments=("values",),
    compute=lambda recalibration, mixture, values: mixture.prob(values),
)
UPPER = Question(
    "upper_quantiles",
    "upper quantiles",
    shape=("levels", "numbers"),
    arguments=("levels",),
    needs_order=True,
    compute=lambda recalibration, mixture, levels: mixture.quantiles(1.0 - levels),
    output="upper",
    parameter="upper",
)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_every_question_has_an_answer(question):
    answering = Answers if question.of_summary else Recalibration
    assert question.compute is not None or hasattr(answering, question.name)


def test_unknown_question_names_the_known():
    with pytest.raises(ValueError, match=r"Ask one of \['mean', .*question='mode'"):
        questions.question_named("mode")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A live model and the path of its export."""
    path = tmp_path_factory.mktemp("questions") / "1"
    inputs = keras.Input((3,))
    outputs = tfbbb.layers.DenseVariational(1)(inputs)
    likelihood = tfbbb.likelihoods.Normal(scale=0.5)
    live = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    live.export_predictive(path)
    return live, path


@pytest.fixture
def added(exported, monkeypatch):
    """The same, and two more questions."""
    monkeypatch.setattr(questions, "QUESTIONS", (*QUESTIONS, DENSITY, UPPER))
    live, path = exported
    return live, tfbbb.load(path)


def test_one_entry_adds_an_answer(added):
    live, loaded = added
    values = np.full((5, 1), 0.3)
    # The mean of the only layer is integrated, so that all draws are one normal.
    prediction = live.predictive(X, 100, "local")
    expected = stats.norm(prediction.mean, prediction.stddev)
    for density in (
        prediction.ask("density", values),
        loaded.predictive(X).ask("density", values),
    ):
        np.testing.assert_allclose(density, expected.pdf(values), rtol=1e-5)
    for upper in (
        prediction.ask("upper_quantiles", [0.1, 0.2]),
        loaded.predictive(X).ask("upper_quantiles", [0.1, 0.2]),
        loaded.ask("upper_quantiles", X, [0.1, 0.2]),
    ):
        for place, level in enumerate((0.1, 0.2)):
            np.testing.assert_allclose(
                upper[:, place], expected.isf(level), rtol=1e-4, atol=1e-5
            )


def test_one_entry_adds_an_answer_of_the_service(added, monkeypatch):
    _, loaded = added
    asked = parameters_model(questions.served_questions())
    monkeypatch.setattr(query, "Parameters", asked)
    body = {"instances": X.tolist(), "parameters": {"upper": [0.1]}}
    found = served_answer(loaded, body)
    uppers = [row["upper"] for row in found["predictions"]]
    np.testing.assert_allclose(uppers, loaded.ask("upper_quantiles", X, [0.1]))
    assert asked.model_json_schema()["properties"]["upper"]["description"] == (
        "Levels of the upper quantiles of p(y | x) to return; not for classes."
    )
    row = row_model(questions.served_questions()).model_json_schema()["properties"]
    assert row["upper"]["description"] == "If requested: upper quantiles."
