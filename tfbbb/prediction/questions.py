"""The questions that a predictive distribution answers, without TensorFlow.

One entry of `QUESTIONS` adds an answer. Live predictions, the functions and signatures
of a SavedModel, loaded models, the service and its documentation loop over the table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Question:
    """A question about the predictive distribution of each row.

    Attributes:
        name: The name of the question, of the function in a SavedModel and, if it has
            an `output`, of the signature.
        text: What the answer is, in plural, for messages and documentation.
        shape: The axes of the answer after the rows: `"draws"`, `"levels"`, then the
            places of a row, then `"means"` (k; C classes), `"numbers"` (k; of classes
            1) or `"y"` (k; of classes none, because y is an index). Answers are in raw
            units, float64 but for y.
        arguments: The arguments beside the outputs [rows, S, ..., P]: any of
            `targets`; `values`, numbers [rows, ..., k] (of ordered classes k is 1);
            `levels` [Q]; `draws`, the draw that each sample belongs to, [rows, n]; and
            `noise`, standard normals [rows, n, ..., noise_size].
        needs_order: Whether only likelihoods of targets with an order have an answer.
        compute: Computes the answer from a recalibration, a `Mixture` and the
            arguments; None calls the recalibration's method of this name.
        output: The output of the signature that answers the question; empty if no
            signature does. A signature puts draws before rows.
        parameter: The parameter of `:predict` that asks the question: its levels, or
            whether to answer. Empty if the service does not answer the question.
    """

    name: str
    text: str
    shape: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    needs_order: bool = False
    compute: Callable[..., Any] | None = None
    output: str = ""
    parameter: str = ""

    def answer(self, recalibration: Any, mixture: Any, *arguments: Any) -> Any:
        """Returns the answer of a recalibrated mixture of likelihoods."""
        compute = self.compute or getattr(type(recalibration), self.name)
        return compute(recalibration, mixture, *arguments)

    @property
    def draws_first(self) -> bool:
        """Whether the signature puts an axis of draws before the rows."""
        return "draws" in self.shape

    @property
    def takes_levels(self) -> bool:
        """Whether the question is about levels."""
        return "levels" in self.arguments


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
        output="quantiles",
        parameter="quantiles",
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
        output="samples",
        parameter="return_samples",
    ),
)


def question_named(name: str) -> Question:
    """Returns the question of this name.

    Raises:
        ValueError: There is no such question.
    """
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
