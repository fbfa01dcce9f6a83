"""The answers about the predictive distributions of some rows."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.prediction.conformal_reach import conformal_bounds

Summary = dict[str, Tensor]
# Takes levels [Q] and returns the answered quantiles of all rows, [rows, Q, ..., k].
Quantiles = Callable[[ArrayLike], Tensor]
# Sums of probabilities differ by rounding between a live and an exported model.
_ROUNDING = 1e-6
_REGRESSION_SUMMARY = ("mean", "variance", "epistemic", "aleatoric")
_CLASS_SUMMARY = ("probabilities", "entropy", "mutual_information")


@dataclass(frozen=True)
class Answers:
    """The answers about one output of a network, by a live or an exported model."""

    # By the name of each question, a function of the outputs [rows, S, ..., P] and the
    # question's arguments.
    functions: Mapping[str, Callable[..., Tensor]]
    # Returns the summary of the mixture of outputs: see `tfbbb.prediction.summary`.
    moments: Callable[[Tensor], Summary]
    task: Literal["regression", "classification"]
    # Whether targets have a distribution function and quantiles.
    ordered: bool
    # Whether targets are integers.
    discrete: bool
    # Number of standard normals that a sample takes.
    noise_size: int
    # Returns targets, of one row each, in the shape that the functions take; raises
    # ValueError for values that cannot be targets. That of a live model also takes
    # which targets count, by a mask.
    check_targets: Callable[..., np.ndarray]
    # Names of the classes.
    classes: Sequence[str] | None = None
    # Changes the summary of the mixture into the answered one, by answered quantiles.
    summary: Callable[[Summary, Quantiles], Summary] | None = None
    # Takes levels [Q] and the index of each row's group, [rows] or None, and returns
    # the greatest score that conformal intervals or prediction sets contain, [Q, k] or
    # [rows, Q, k]: see `conformal_reach`.
    reach: Callable[[ArrayLike, np.ndarray | None], np.ndarray] | None = None
    # The least and the greatest number that a target may be; None for classes.
    limits: Sequence[float] | None = None
    # Weights of the members in the mixture; None for equal ones.
    member_weights: Sequence[float] | None = None

    @property
    def central_intervals(self) -> bool:
        """Whether intervals lie between the quantiles of equal tails of the level."""
        return self.reach is None or self.task == "classification"

    def intervals(
        self,
        summary: Summary,
        quantiles: Quantiles,
        levels: ArrayLike,
        groups: np.ndarray | None = None,
    ) -> np.ndarray:
        """Returns lower and upper bounds of intervals, [rows, 2, Q, ..., k].

        `quantiles` returns the answered quantiles at levels, and `groups` is the index
        of each row's group, [rows], or None.
        """
        levels = np.asarray(levels, np.float64)
        if not self.central_intervals:
            assert self.reach is not None
            return conformal_bounds(
                self.reach,
                quantiles,
                levels,
                groups,
                discrete=self.discrete,
                limits=self.limits,
            )
        tails = 0.5 - 0.5 * levels
        found = quantiles(np.concatenate([tails, 1.0 - tails]))
        return np.stack(np.split(found, 2, axis=1), axis=1)

    def prediction_sets(
        self,
        summary: Summary,
        quantiles: Quantiles,
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
        if self.reach is None:
            # Of each place of a row, if it has several.
            wide = levels.reshape(-1, *[1] * (before.ndim - 2))
            inside = before < wide - _ROUNDING
        else:
            # Rows have one place.
            inside = before <= self.reach(levels, groups) + _ROUNDING
        return inside | (before <= 0.0)

    def ask(self, question: str, outputs: Tensor, *arguments: ArrayLike) -> Tensor:
        """Returns the answer to the question of this name."""
        if question not in self.functions:
            raise ValueError(
                "The model was exported without this question; export it again. "
                f"Received: question={question!r}, known are {sorted(self.functions)}"
            )
        return self.functions[question](outputs, *arguments)


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


def summary_outputs(answers: Answers, summary: Container[str]) -> list[str]:
    """Returns the names of the outputs of `serving_default`."""
    is_classes = answers.task == "classification"
    names = list(_CLASS_SUMMARY if is_classes else _REGRESSION_SUMMARY)
    return [*names, *(["between_members"] if "between_members" in summary else [])]
