"""The answers of a model that is in memory."""

import contextlib
import functools
from typing import Any

import keras

from tfbbb.likelihoods import Likelihood
from tfbbb.prediction import questions
from tfbbb.prediction.answers import Answers
from tfbbb.prediction.mixture import Mixture
from tfbbb.prediction.questions import Question
from tfbbb.recalibration.recalibration import IDENTITY, Recalibration
from tfbbb.types import Tensor

State = list[tuple[keras.Variable, Any]]


def live_answers(
    likelihood: Likelihood, recalibration: Recalibration, state: State | None = None
) -> Answers:
    """Returns the answers of the mixture of likelihoods, recalibrated.

    Args:
        likelihood: p(y | outputs).
        recalibration: Changes the answers, unless it has changed the outputs already.
        state: Values that the variables of the likelihood have for this prediction,
            whatever is assigned to them later; None for their present values.
    """
    if recalibration.acts_on_outputs:
        recalibration = IDENTITY

    def answer(question: Question, outputs: Tensor, *arguments: Any) -> Any:
        scope = (
            contextlib.nullcontext()
            if state is None
            else keras.StatelessScope(state_mapping=state)
        )
        with scope:
            mixture = Mixture(likelihood, outputs)
            return question.answer(recalibration, mixture, *arguments)

    return Answers(
        functions={
            question.name: functools.partial(answer, question)
            for question in questions.QUESTIONS
            if likelihood.ordered or not question.needs_order
        },
        task=likelihood.task,
        ordered=likelihood.ordered,
        discrete=likelihood.discrete,
        noise_size=likelihood.noise_size,
        check_targets=likelihood.check_targets,
        summary=None if recalibration == IDENTITY else recalibration.summary,
        reach=None if recalibration.central_intervals else recalibration.reach,
    )
