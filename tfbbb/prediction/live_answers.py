"""The answers of a model that is in memory."""

import contextlib
import functools
from typing import TYPE_CHECKING

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction import questions
from tfbbb.prediction.answers import Answers
from tfbbb.prediction.mixture import Mixture
from tfbbb.prediction.questions import Question

if TYPE_CHECKING:
    from tfbbb.prediction.recalibration.recalibration import Recalibration

State = list[tuple[keras.Variable, tf.Tensor]]


def live_answers(
    likelihood: Likelihood, recalibration: "Recalibration", state: State | None = None
) -> Answers:
    """Returns the answers of the mixture of likelihoods, recalibrated."""
    density = recalibration.of_answers

    def answer(question: Question, outputs: Tensor, *arguments: ArrayLike) -> tf.Tensor:
        scope = (
            contextlib.nullcontext()
            if state is None
            else keras.StatelessScope(state_mapping=state)
        )
        with scope:
            mixture = Mixture(likelihood, outputs)
            return question.answer(density, mixture, *arguments)

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
