"""The answers of a model that is in memory."""

import contextlib
import functools
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction import questions
from tfbbb.prediction.answers import Answers, Summary
from tfbbb.prediction.mixture import Mixture
from tfbbb.prediction.questions import Question
from tfbbb.prediction.summary import summary

if TYPE_CHECKING:
    from tfbbb.prediction.recalibration.recalibration import Recalibration

State = list[tuple[keras.Variable, tf.Tensor]]


def live_answers(
    likelihood: Likelihood,
    recalibration: "Recalibration",
    members: int = 1,
    state: State | None = None,
) -> Answers:
    """Returns the answers of the mixture of likelihoods, recalibrated.

    `state` has the values of variables, if they are not the present ones.
    """
    density = recalibration.of_answers

    def scope() -> contextlib.AbstractContextManager[Any]:
        if state is None:
            return contextlib.nullcontext()
        return keras.StatelessScope(state_mapping=state)

    def answer(question: Question, outputs: Tensor, *arguments: ArrayLike) -> tf.Tensor:
        with scope():
            mixture = Mixture(likelihood, outputs)
            return question.answer(density, mixture, *arguments)

    def moments(outputs: Tensor) -> Summary:
        with scope():
            return summary(likelihood, outputs, members)

    def check_targets(
        targets: ArrayLike, counted: np.ndarray | None = None
    ) -> np.ndarray:
        checked = likelihood.check_targets(targets, counted)
        if counted is None:
            return checked
        return likelihood.with_placeholders(tf.constant(checked), counted).numpy()

    return Answers(
        functions={
            question.name: functools.partial(answer, question)
            for question in questions.QUESTIONS
            if not question.of_summary
            and (likelihood.ordered or not question.needs_order)
        },
        moments=moments,
        task=likelihood.task,
        ordered=likelihood.ordered,
        discrete=likelihood.discrete,
        noise_size=likelihood.noise_size,
        check_targets=check_targets,
        summary=None if density.is_identity else density.summary,
        reach=recalibration.reach if recalibration.conformal else None,
        limits=likelihood.limits,
        member_weights=likelihood.member_weights,
    )
