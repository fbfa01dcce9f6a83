"""The questions that a predictive distribution answers, without TensorFlow.

One entry of `QUESTIONS` adds an answer. Live predictions, the functions of a
SavedModel, loaded models, the service and its documentation loop over the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import np
from tfbbb.base.types import ArrayLike, Tensor


@dataclass(frozen=True)
class Question:
    """A question about the predictive distribution of each row.

    Attributes:
        name: The name of the question, and of the function in a SavedModel.
        text: What the answer is, in plural, for messages and documentation.
        shape: The axes of the answer after the rows: `"draws"`, `"parts"`, `"levels"`,
            then the places of a row, then `"means"` (k; C classes), `"numbers"` (k; of
            classes 1) or `"y"` (k; of classes none, because y is an index). Answers are
            in raw units, float64 but for y and for sets, which are booleans.
        arguments: The arguments beside the outputs [rows, S, ..., P]: any of
            `targets`; `values`, numbers [rows, ..., k];
            `levels` [Q]; `times`, numbers [Q] of all rows; `draws`, the draw that each
            sample belongs to, [rows, n]; and `noise`, standard normals
            [rows, n, ..., noise_size].
        needs_order: Whether only likelihoods of targets with an order have an answer.
        needs_classes: Whether only likelihoods of classes have an answer.
        of_summary: Whether the answer follows from other answers: then the method of
            this name of `tfbbb.prediction.answers.Answers` computes it.
        compute: Computes the answer from a recalibration, a `Mixture` and the
            arguments; None calls the recalibration's method of this name.
        output: The name of the answer in tables and responses.
        parts: Names of the parts of the answer along the axis `"parts"`, in place of
            `output`.
        parameter: The parameter of `:predict` that asks the question: its levels, or
            whether to answer; `targets` stand beside the rows. Empty if the service
            does not answer the question.
    """

    name: str
    text: str
    shape: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    needs_order: bool = False
    needs_classes: bool = False
    of_summary: bool = False
    compute: Callable[..., Tensor] | None = None
    output: str = ""
    parts: tuple[str, ...] = ()
    parameter: str = ""

    def answer(self, recalibration: Any, mixture: Any, *arguments: ArrayLike) -> Tensor:
        """Returns the answer of a recalibrated mixture of likelihoods."""
        compute = self.compute or getattr(type(recalibration), self.name)
        return compute(recalibration, mixture, *arguments)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the answer."""
        return self.parts or (self.output,)

    @property
    def draws_first(self) -> bool:
        """Whether a loaded model's answer has draws before rows."""
        return "draws" in self.shape

    @property
    def takes_targets(self) -> bool:
        """Whether the question is about given targets."""
        return "targets" in self.arguments

    @property
    def takes_levels(self) -> bool:
        """Whether the question is about levels, or about times as if they were."""
        return "levels" in self.arguments or self.takes_times

    @property
    def takes_times(self) -> bool:
        """Whether the question is about times, or other numbers of all rows."""
        return "times" in self.arguments


def quantiles_of(recalibration: Any, mixture: Any, levels: ArrayLike) -> Tensor:
    """Returns quantiles of a recalibrated mixture at levels [Q], [rows, Q, ..., k]."""
    return _bounded(mixture, recalibration.quantiles(mixture, levels))


def _sample(recalibration: Any, mixture: Any, draws: Tensor, noise: Tensor) -> Tensor:
    return _bounded(mixture, recalibration.sample(mixture, draws, noise))


def _survival(recalibration: Any, mixture: Any, times: ArrayLike) -> Tensor:
    rows, _, *places, _ = mixture.outputs.shape
    like = np.ones((rows, *places, mixture.likelihood.num_targets))
    up_to = [recalibration.cdf(mixture, time * like) for time in np.ravel(times)]
    return 1.0 - ops.stack(up_to, axis=1)


def _bounded(mixture: Any, values: Tensor) -> Tensor:
    """Returns values within the bounds of the targets, if a likelihood has any."""
    bounds = mixture.likelihood.bounds
    return values if bounds is None else ops.clip_by_value(values, *bounds)


QUESTIONS = (
    Question(
        "mean",
        "means E[y | x, w] of each draw",
        shape=("draws", "means"),
        compute=lambda recalibration, mixture: mixture.mean_of_draws,
    ),
    Question(
        "log_prob",
        "log densities of the targets in nats, of the average over the draws",
        arguments=("targets",),
        output="log_prob",
        parameter="targets",
    ),
    Question(
        "log_prob_of_draws",
        "log densities of all targets of the row in nats, of each draw",
        shape=("draws",),
        arguments=("targets",),
    ),
    Question(
        "quantiles",
        "quantiles",
        shape=("levels", "numbers"),
        arguments=("levels",),
        needs_order=True,
        compute=quantiles_of,
        output="quantiles",
        parameter="quantiles",
    ),
    Question(
        "intervals",
        "intervals",
        shape=("parts", "levels", "numbers"),
        arguments=("levels",),
        needs_order=True,
        of_summary=True,
        parts=("lower", "upper"),
        parameter="intervals",
    ),
    Question(
        "joint_intervals",
        "boxes that hold all targets of the row",
        shape=("parts", "levels", "numbers"),
        arguments=("levels",),
        needs_order=True,
        of_summary=True,
        parts=("joint_lower", "joint_upper"),
        parameter="joint_intervals",
    ),
    Question(
        "prediction_sets",
        "prediction sets",
        shape=("levels", "means"),
        arguments=("levels",),
        needs_classes=True,
        of_summary=True,
        output="prediction_sets",
        parameter="prediction_sets",
    ),
    Question(
        "survival",
        "probabilities that a target is beyond a time or another number",
        shape=("levels", "numbers"),
        arguments=("times",),
        needs_order=True,
        compute=_survival,
        output="survival",
        parameter="times",
    ),
    Question(
        "cdf",
        "distribution function",
        shape=("numbers",),
        arguments=("values",),
        needs_order=True,
    ),
    Question(
        "sample",
        "S draws of y",
        shape=("draws", "y"),
        arguments=("draws", "noise"),
        compute=_sample,
        output="samples",
        parameter="return_samples",
    ),
)


def question_named(name: str) -> Question:
    """Returns the question of this name."""
    for question in QUESTIONS:
        if question.name == name:
            return question
    raise ValueError(
        f"Ask one of {[question.name for question in QUESTIONS]}. "
        f"Received: question={name!r}"
    )


def served_questions() -> tuple[Question, ...]:
    """Returns the questions that `:predict` answers."""
    return tuple(question for question in QUESTIONS if question.parameter)
