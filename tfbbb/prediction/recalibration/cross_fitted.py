"""Predictions whose rows are recalibrated by other rows."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tfbbb.base.types import ArrayLike
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.questions import Question
from tfbbb.prediction.recalibration.from_outputs import apply
from tfbbb.prediction.recalibration.recalibration import Recalibration
from tfbbb.prediction.result import Predictive, changed
from tfbbb.tables.splitting import draw_folds

FOLDS = 5


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows, their prediction by a model that did not see them, and targets."""

    likelihood: Likelihood
    # Not recalibrated.
    prediction: Predictive
    # From `likelihood.check_targets`.
    targets: np.ndarray
    # The input that tells groups apart, for conformal methods, and its values, [rows].
    by: str | int | None = None
    labels: np.ndarray | None = None
    # The group of each row, [rows], of which folds have all rows or none.
    together: np.ndarray | None = None
    # The weight of each row, [rows].
    weights: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> "HeldOut":
        """Returns some of the rows, by their indices in ascending order."""
        names = ("targets", "labels", "together", "weights")
        taken: dict[str, Any] = {}
        for name in names:
            given = getattr(self, name)
            taken[name] = None if given is None else given[rows]
        return replace(self, prediction=self.prediction.take(rows), **taken)

    def fit(self, method: Recalibration) -> Recalibration:
        """Returns the recalibration fitted to the rows, by groups if conformal."""
        rows = self.likelihood, self.prediction, self.targets, self.weights
        groups: dict[str, Any] = {}
        if method.conformal:
            groups = {"by": self.by, "labels": self.labels}
        return method.fitted(*rows, **groups)


class CrossFitted(Predictive):
    """The recalibrated prediction of rows, none of which its recalibration has seen.

    Scores of a recalibration on the rows that it was fitted to are too good. Here the
    rows are split at random into folds, and the recalibration of each fold is fitted to
    the rows of the other folds; it raises ValueError if it cannot be fitted to some.
    """

    def __init__(self, method: Recalibration, rows: HeldOut):
        generator = np.random.default_rng(0)
        order = generator.permutation(len(rows.targets))
        parts = list(map(np.sort, np.array_split(order, FOLDS)))
        together = rows.together
        if together is not None and len(np.unique(together)) >= FOLDS:
            fold = draw_folds(together, FOLDS, generator=generator)
            parts = [np.flatnonzero(fold == number) for number in range(FOLDS)]
        self._parts: list[tuple[np.ndarray, Predictive]] = []
        for places in parts:
            left_out = rows.take(places)
            fitted = rows.take(np.setdiff1d(order, places)).fit(method)
            groups = None
            if left_out.labels is not None:
                groups = fitted.group_numbers(left_out.labels)
            part = apply(fitted, rows.likelihood, left_out.prediction, groups)
            self._parts.append((places, part))
        # The draws are those of all rows; the answers of a part check arguments.
        whole = vars(rows.prediction)
        vars(self).update({**whole, "answers": self._parts[0][1].answers})
        vars(self).pop("_summary", None)
        # Of the latest levels: quantiles are searched for, and scores share them.
        self._latest: dict[tuple[Any, ...], np.ndarray] = {}

    def _answer(self, question: Question, *arrays: np.ndarray) -> np.ndarray:
        if not question.takes_levels:
            return self._join(lambda x, *own: x._answer(question, *own), *arrays)
        key = question.name, *np.ravel(arrays)
        if key not in self._latest:
            self._latest = {key: self._join(lambda x: x._answer(question, *arrays))}
        return self._latest[key]

    @functools.cached_property
    def _summary(self) -> dict[str, np.ndarray]:
        names = self._parts[0][1]._summary
        return {name: self._join(lambda x, n=name: x._summary[n]) for name in names}

    def reach(self, levels: Sequence[float], *, joint: bool = False) -> np.ndarray:
        return self._join(lambda part: part.reach(levels, joint=joint))

    def of_target(self, target: int) -> Self:
        parts = [(rows, part.of_target(target)) for rows, part in self._parts]
        changes = {"answers": parts[0][1].answers, "_parts": parts, "_latest": {}}
        return changed(super().of_target(target), **changes)

    def take(self, rows: np.ndarray) -> Self:
        places = np.full(len(self), -1)
        places[rows] = np.arange(len(rows))
        parts = [
            (places[of_part][chosen], part.take(chosen))
            for of_part, part in self._parts
            if len(chosen := np.flatnonzero(places[of_part] >= 0))
        ]
        return changed(super().take(rows), _parts=parts, _latest={})

    def _join(self, values: Callable[..., np.ndarray], *given: ArrayLike) -> np.ndarray:
        """Joins what the parts return, given their rows of some arrays."""
        found = [values(part, *(x[rows] for x in given)) for rows, part in self._parts]
        back = np.argsort(np.concatenate([rows for rows, _ in self._parts]))
        return np.concatenate(list(map(np.asarray, found)))[back]
