"""The questions that a predictive distribution answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfbbb.types import ArrayLike


@dataclass(frozen=True)
class Question:
    """A question about the predictive distribution of each row.

    Attributes:
        name: The name of the question, of the method of `Recalibration` that answers
            it, and of the function in a SavedModel.
        arguments: What is given beside the outputs [rows, S, ..., P]: any of
            `targets`; `values`, numbers [rows, ..., k] (of ordered classes k is 1);
            `levels` [Q]; `draws`, the draw that each sample belongs to, [rows, n]; and
            `noise`, standard normals [rows, n, ..., noise_size].
        needs_order: Whether only targets with an order have an answer.
        compute: Computes the answer from a recalibration, a `Mixture` and the
            arguments; None for the recalibration's method of this name.
    """

    name: str
    arguments: tuple[str, ...] = ()
    needs_order: bool = False
    compute: Callable[..., Any] | None = None

    def answer(self, recalibration: Any, mixture: Any, *arguments: Any) -> Any:
        """Returns the answer of a recalibrated mixture of likelihoods."""
        compute = self.compute or getattr(type(recalibration), self.name)
        return compute(recalibration, mixture, *arguments)


def _mean_of_draws(recalibration: Any, mixture: Any) -> Any:
    return mixture.mean_of_draws


def _log_prob_of_draws(recalibration: Any, mixture: Any, targets: ArrayLike) -> Any:
    log_probs = recalibration.log_prob_of_draws(mixture, targets)
    # A row may have several places, each with targets of its own.
    return tf.reduce_sum(log_probs, axis=list(range(2, len(log_probs.shape))))


# Live predictions, SavedModels and predictions of loaded models all loop over this
# table. Answers are in raw units, float64 but for samples.
QUESTIONS = (
    # E[y | x, w] of each draw, [rows, S, ..., k].
    Question("mean", compute=_mean_of_draws),
    # The log of the average likelihood, [rows, ...], in nats.
    Question("log_prob", ("targets",)),
    # log p(targets | x, w) of each draw, [rows, S], in nats.
    Question("log_prob_of_draws", ("targets",), compute=_log_prob_of_draws),
    # Values of y, [rows, n, ..., k]; of classes their indices, [rows, n, ...].
    Question("sample", ("draws", "noise")),
    # [rows, Q, ..., k].
    Question("quantiles", ("levels",), needs_order=True),
    # P(y <= values), [rows, ..., k].
    Question("cdf", ("values",), needs_order=True),
)
