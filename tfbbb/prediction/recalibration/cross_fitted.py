"""Predictions whose rows are recalibrated by other rows."""

import copy
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tfbbb.base.types import ArrayLike
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.recalibration.from_outputs import apply
from tfbbb.prediction.recalibration.recalibration import Recalibration
from tfbbb.prediction.result import Predictive
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


class CrossFitted:
    """The recalibrated prediction of rows, none of which its recalibration has seen.

    Scores of a recalibration on the rows that it was fitted to are too good. Here the
    rows are split at random into folds, and the recalibration of each fold is fitted to
    the rows of the other folds; it raises ValueError if it cannot be fitted to some.
    Functions of `tfbbb.metrics` score the result as a `tfbbb.Predictive`, whose names
    it has.
    """

    # Each row has all its targets.
    mask = None

    def __init__(self, method: Recalibration, rows: HeldOut):
        generator = np.random.default_rng(0)
        order = generator.permutation(len(rows.targets))
        parts = list(map(np.sort, np.array_split(order, FOLDS)))
        together = rows.together
        if together is not None and len(np.unique(together)) >= FOLDS:
            fold = draw_folds(together, FOLDS, generator=generator)
            parts = [np.flatnonzero(fold == number) for number in range(FOLDS)]
        self._parts: list[tuple[np.ndarray, Predictive]] = []
        # Of the latest levels: quantiles are searched for, and scores share them.
        self._bounds: dict[Hashable, tuple[np.ndarray, np.ndarray]] = {}
        for places in parts:
            left_out = rows.take(places)
            fitted = rows.take(np.setdiff1d(order, places)).fit(method)
            groups = None
            if left_out.labels is not None:
                groups = fitted.group_numbers(left_out.labels)
            part = apply(fitted, rows.likelihood, left_out.prediction, groups)
            self._parts.append((places, part))

    @property
    def discrete(self) -> bool:
        return self._parts[0][1].discrete

    @property
    def masses(self) -> tuple[float, ...]:
        return self._parts[0][1].masses

    @property
    def central_intervals(self) -> bool:
        return self._parts[0][1].central_intervals

    @property
    def mean(self) -> np.ndarray:
        return self._join(lambda part: part.mean)

    @property
    def stddev(self) -> np.ndarray:
        return self._join(lambda part: part.stddev)

    @property
    def probabilities(self) -> np.ndarray:
        return self._join(lambda part: part.probabilities)

    def log_prob(self, y: ArrayLike) -> np.ndarray:
        return self._join(Predictive.log_prob, y)

    def cdf(self, y: ArrayLike) -> np.ndarray:
        return self._join(Predictive.cdf, y)

    def quantile(self, p: float | Sequence[float]) -> np.ndarray:
        return self._join(lambda part: part.quantile(p))

    def interval(
        self, level: float | Sequence[float] = 0.9, *, joint: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        key = tuple(np.ravel(level)), np.ndim(level), joint
        if key not in self._bounds:
            bounds = self._join(
                lambda part: np.stack(part.interval(level, joint=joint), axis=1)
            )
            self._bounds = {key: (bounds[:, 0], bounds[:, 1])}
        return self._bounds[key]

    def reach(self, levels: Sequence[float], *, joint: bool = False) -> np.ndarray:
        return self._join(lambda part: part.reach(levels, joint=joint))

    def prediction_set(self, level: float = 0.9) -> np.ndarray:
        return self._join(lambda part: part.prediction_set(level))

    def of_target(self, target: int) -> "CrossFitted":
        alone = copy.copy(self)
        alone._bounds = {}
        alone._parts = [(rows, part.of_target(target)) for rows, part in self._parts]
        return alone

    def take(self, rows: np.ndarray) -> "CrossFitted":
        places = np.full(len(self), -1)
        places[rows] = np.arange(len(rows))
        taken = copy.copy(self)
        taken._bounds = {}
        taken._parts = [
            (places[of_part][chosen], part.take(chosen))
            for of_part, part in self._parts
            if len(chosen := np.flatnonzero(places[of_part] >= 0))
        ]
        return taken

    def __len__(self) -> int:
        return sum(len(rows) for rows, _ in self._parts)

    def _join(self, values: Callable[..., np.ndarray], *given: ArrayLike) -> np.ndarray:
        """Joins what the parts return, given their rows of some arrays."""
        arrays = [np.asarray(array) for array in given]
        found = [values(part, *(x[rows] for x in arrays)) for rows, part in self._parts]
        back = np.argsort(np.concatenate([rows for rows, _ in self._parts]))
        return np.concatenate(list(map(np.asarray, found)))[back]
