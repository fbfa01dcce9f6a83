"""The answers about the predictive distributions of some rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.conformal_reach import bounds_of_scores
from tfbbb.prediction.joint_reach import joint_reach
from tfbbb.prediction.mixture import Mixture
from tfbbb.prediction.questions import question_named
from tfbbb.prediction.summary import summary

Summary = dict[str, Tensor]
# Takes levels [Q] and returns the answered quantiles of all rows, [rows, Q, ..., k].
Quantiles = Callable[[ArrayLike], Tensor]
# Applies a function of outputs [rows, S, ..., P], and of arrays, to blocks of rows.
OfOutputs = Callable[..., Any]
# Sums of probabilities differ by rounding between a live and an exported model.
_ROUNDING = 1e-6
_REGRESSION_SUMMARY = ("mean", "variance", "epistemic", "aleatoric")
_CLASS_SUMMARY = ("probabilities", "entropy", "mutual_information")


class Answers:
    """What one output of a network says of its targets, by the drawn outputs alone.

    Everything is a function of outputs [rows, S, ..., P], wherever they come from: a
    model in memory, a SavedModel, an ONNX file, a chain.

    Args:
        likelihood: The likelihood; its present values count.
        recalibration: The `Recalibration`. One that acts on outputs has changed them.
        members: Number of members among the draws.
        classes: Names of the classes.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        recalibration: Any,
        members: int = 1,
        classes: Sequence[str] | None = None,
    ):
        self.likelihood = likelihood.frozen()
        self.recalibration = recalibration
        self.members = members
        self.classes = classes

    def moments(self, outputs: ArrayLike) -> Summary:
        """Returns the summary of the mixture: see `tfbbb.prediction.summary`."""
        with np.errstate(all="ignore"):
            return summary(self.likelihood, np.asarray(outputs), self.members)

    def summary(self, mixture: Summary, quantiles: Quantiles) -> Summary:
        """Returns the summary of the recalibrated distribution from the mixture's.

        `quantiles` takes levels [Q] and returns those of all rows, [rows, Q, ..., k].
        """
        return self.recalibration.of_answers.summary(mixture, quantiles)

    def ask(
        self, question: str, outputs: ArrayLike, *arguments: ArrayLike
    ) -> np.ndarray:
        """Returns the answer to the question of this name, [rows, ...]."""
        # Far out, quantities are infinite, as they should be.
        with np.errstate(all="ignore"):
            mixture = Mixture(self.likelihood, outputs)
            asked = question_named(question)
            recalibration = self.recalibration.of_answers
            return np.asarray(asked.answer(recalibration, mixture, *arguments))

    def check_targets(
        self, targets: ArrayLike, counted: np.ndarray | None = None
    ) -> np.ndarray:
        """Returns targets in the shape that questions take; see `Likelihood`."""
        checked = self.likelihood.check_targets(targets, counted)
        if counted is None:
            return checked
        return self.likelihood.with_placeholders(checked, counted)

    @property
    def is_classes(self) -> bool:
        """Whether targets are classes."""
        return self.likelihood.task == "classification"

    @property
    def central_intervals(self) -> bool:
        """Whether intervals lie between the quantiles of equal tails of the level."""
        return not self.recalibration.conformal or self.is_classes

    @property
    def num_targets(self) -> int:
        """Number k of targets; 1 of classes."""
        return getattr(self.likelihood, "num_targets", 1)

    def quantiles(self, of_outputs: OfOutputs, levels: ArrayLike) -> np.ndarray:
        """Returns quantiles [rows, Q, ..., k] at levels [Q].

        Or at levels [rows, Q, ..., k], or [1, Q, ..., k], of each row and target.
        """
        levels = np.asarray(levels, np.float64)
        if levels.ndim > 1 and len(levels) > 1:
            return of_outputs(lambda x, own: self.ask("quantiles", x, own), levels)
        return of_outputs(lambda x: self.ask("quantiles", x, levels))

    def intervals(
        self,
        summary: Summary,
        of_outputs: OfOutputs,
        levels: np.ndarray,
        groups: np.ndarray | None = None,
        *,
        joint: bool = False,
    ) -> np.ndarray:
        """Returns lower and upper bounds of intervals, [rows, 2, Q, ..., k].

        `groups` is the index of each row's group, [rows], or None. All sides of a
        joint box lie between quantiles of the same levels.
        """
        joint = joint and self.num_targets > 1
        if joint or not self.central_intervals:
            reach = self.reach(of_outputs, levels, groups, joint=joint)
            return bounds_of_scores(
                np.broadcast_to(reach, (*reach.shape[:-1], self.num_targets)),
                lambda levels: self.quantiles(of_outputs, levels),
                discrete=self.likelihood.discrete,
                limits=self.likelihood.limits,
            )
        tails = 0.5 - 0.5 * levels
        found = self.quantiles(of_outputs, np.concatenate([tails, 1.0 - tails]))
        return np.stack(np.split(found, 2, axis=1), axis=1)

    joint_intervals = functools.partialmethod(intervals, joint=True)

    def reach(
        self,
        of_outputs: OfOutputs,
        levels: np.ndarray,
        groups: np.ndarray | None = None,
        *,
        joint: bool = False,
    ) -> np.ndarray:
        """Returns the greatest score in conformal intervals, [rows or 1, Q, k].

        In joint ones it is [rows or 1, Q, ..., 1], by draws if they are not conformal.
        """
        if self.central_intervals and joint:
            density = self.recalibration.of_answers
            return of_outputs(
                lambda x: joint_reach(density, Mixture(self.likelihood, x), levels)
            )
        found = np.asarray(self.recalibration.reach(levels, groups))
        found = found[np.newaxis] if groups is None else found
        return found[..., -1:] if joint else found[..., : self.num_targets]

    def prediction_sets(
        self,
        summary: Summary,
        of_outputs: OfOutputs,
        levels: ArrayLike,
        groups: np.ndarray | None = None,
    ) -> np.ndarray:
        """Returns whether each class is in the set of a level, [rows, Q, ..., C].

        A set has the most probable classes until their probabilities add up to the
        level, or to the conformal threshold (Romano, Sesia and Candes 2020, without
        randomisation). A set thus has at least one class.
        """
        before = more_probable(summary["probabilities"])[:, np.newaxis]
        levels = np.asarray(levels, np.float64)
        if not self.recalibration.conformal:
            # Of each place of a row, if it has several.
            wide = levels.reshape(-1, *[1] * (before.ndim - 2))
            inside = before < wide - _ROUNDING
        else:
            # Rows have one place.
            inside = before <= self.recalibration.reach(levels, groups) + _ROUNDING
        return inside | (before <= 0.0)


def more_probable(probabilities: ArrayLike) -> np.ndarray:
    """Returns the probability of the classes more probable than each, [rows, ..., C].

    Of two classes with the same probability, the first counts as more probable.

    Example:

    >>> more_probable([[0.2, 0.7, 0.1]])
    array([[0.7, 0. , 0.9]])
    """
    probabilities = np.asarray(probabilities, np.float64)
    order = np.argsort(-probabilities, axis=-1, kind="stable")
    ranked = np.take_along_axis(probabilities, order, axis=-1)
    # Those before it: the sum of none is exactly 0.
    above = np.concatenate([np.zeros_like(ranked[..., :1]), ranked[..., :-1]], axis=-1)
    before = np.cumsum(above, axis=-1)
    return np.take_along_axis(before, np.argsort(order, axis=-1), axis=-1)


def summary_outputs(summary: Container[str]) -> list[str]:
    """Returns the names of the outputs of `serving_default`."""
    names = _CLASS_SUMMARY if "probabilities" in summary else _REGRESSION_SUMMARY
    return [*names, *(["between_members"] if "between_members" in summary else [])]
