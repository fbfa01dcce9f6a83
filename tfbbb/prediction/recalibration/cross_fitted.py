"""Predictions whose rows are recalibrated by other rows."""

import copy
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from tfbbb.base.types import ArrayLike
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.recalibration.applied import apply
from tfbbb.prediction.recalibration.conformal import Conformal, group_numbers
from tfbbb.prediction.recalibration.recalibration import Recalibration
from tfbbb.prediction.result import Predictive
from tfbbb.tables.splitting import draw_folds

FOLDS = 5


class CrossFitted:
    """The recalibrated prediction of rows, none of which its recalibration has seen.

    Scores of a recalibration on the rows that it was fitted to are too good. Here the
    rows are split at random into folds, and the recalibration of each fold is fitted to
    the rows of the other folds. Functions of `tfbbb.metrics` score the result as a
    `tfbbb.Predictive`.

    Args:
        method: The recalibration to fit.
        likelihood: p(y | outputs).
        prediction: The prediction of the rows, not recalibrated, by a model that did
            not see them.
        targets: The targets of the rows, from `likelihood.check_targets`.
        by: The input that tells groups apart, for conformal methods.
        labels: The values of this input, [rows].
        together: The group of each row, [rows], of which folds have all rows or none;
            None for a group per row.
        weights: The weight of each row, [rows]; None for 1.
        folds: Number of folds.
        seed: Seed of the folds.

    Raises:
        ValueError: The recalibration cannot be fitted to the rows of some folds.
    """

    def __init__(
        self,
        method: Recalibration,
        likelihood: Likelihood,
        prediction: Predictive,
        targets: np.ndarray,
        by: str | int | None = None,
        labels: np.ndarray | None = None,
        together: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        folds: int = FOLDS,
        seed: int = 0,
    ):
        generator = np.random.default_rng(seed)
        order = generator.permutation(len(targets))
        parts = np.array_split(order, folds)
        if together is not None and len(np.unique(together)) >= folds:
            fold = draw_folds(together, folds, generator=generator)
            parts = [np.flatnonzero(fold == number) for number in range(folds)]
        self._parts: list[tuple[np.ndarray, Predictive]] = []
        # Of the latest levels: quantiles are searched for, and scores share them.
        self._bounds: dict[Hashable, tuple[np.ndarray, np.ndarray]] = {}
        for rows in parts:
            others = np.setdiff1d(order, rows)
            fitted = fit(
                method,
                likelihood,
                prediction.take(others),
                targets[others],
                by,
                None if labels is None else labels[others],
                None if weights is None else weights[others],
            )
            groups = None
            if labels is not None and isinstance(fitted, Conformal):
                groups = group_numbers(fitted, labels[rows])
            part = apply(fitted, likelihood, prediction.take(rows), groups)
            self._parts.append((rows, part))

    mask = None
    """Each row has all its targets."""

    @property
    def discrete(self) -> bool:
        """Whether the targets are integers."""
        return self._parts[0][1].discrete

    @property
    def central_intervals(self) -> bool:
        """Whether `interval` lies between the quantiles of equal tails of its level."""
        return self._parts[0][1].central_intervals

    @property
    def mean(self) -> np.ndarray:
        """E[y], [rows, k]."""
        return self._join(lambda part: part.mean)

    @property
    def stddev(self) -> np.ndarray:
        """Standard deviation of y, [rows, k]."""
        return self._join(lambda part: part.stddev)

    @property
    def probabilities(self) -> np.ndarray:
        """Probabilities of the classes, [rows, C]; of numbers an AttributeError."""
        return self._join(lambda part: part.probabilities)

    def log_prob(self, y: ArrayLike) -> np.ndarray:
        """Returns log p(y | x, data) of each row, [rows], in nats."""
        return self._join_with(y, lambda part, targets: part.log_prob(targets))

    def cdf(self, y: ArrayLike) -> np.ndarray:
        """Returns P(Y <= y | x, data), target by target, [rows, k]."""
        return self._join_with(y, lambda part, values: part.cdf(values))

    def quantile(self, p: float | Sequence[float]) -> np.ndarray:
        """Returns quantiles, as `tfbbb.Predictive` does."""
        return self._join(lambda part: part.quantile(p))

    def interval(
        self, level: float | Sequence[float] = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns lower and upper bounds, as `tfbbb.Predictive` does."""
        key = tuple(np.ravel(level)), np.ndim(level)
        if key not in self._bounds:
            bounds = self._join(lambda part: np.stack(part.interval(level), axis=1))
            self._bounds = {key: (bounds[:, 0], bounds[:, 1])}
        return self._bounds[key]

    def reach(self, levels: Sequence[float]) -> np.ndarray:
        """Returns the greatest scores of targets, as `tfbbb.Predictive` does."""
        return self._join(lambda part: part.reach(levels))

    def prediction_set(self, level: float = 0.9) -> np.ndarray:
        """Returns which classes belong to a set, as `tfbbb.Predictive` does."""
        return self._join(lambda part: part.prediction_set(level))

    def take(self, rows: np.ndarray) -> "CrossFitted":
        """Returns the predictions of some rows, in the order of their indices."""
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

    def _join(self, values: Callable[[Predictive], np.ndarray]) -> np.ndarray:
        found = np.concatenate([np.asarray(values(part)) for _, part in self._parts])
        return found[self._back]

    def _join_with(
        self, y: ArrayLike, values: Callable[[Predictive, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        given = np.asarray(y)
        found = [np.asarray(values(part, given[rows])) for rows, part in self._parts]
        return np.concatenate(found)[self._back]

    @property
    def _back(self) -> np.ndarray:
        return np.argsort(np.concatenate([rows for rows, _ in self._parts]))


def fit(
    method: Recalibration,
    likelihood: Likelihood,
    prediction: Predictive,
    targets: np.ndarray,
    by: str | int | None = None,
    labels: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> Recalibration:
    """Returns the fitted recalibration, by groups if it is conformal."""
    if isinstance(method, Conformal):
        return method.fitted(likelihood, prediction, targets, weights, by, labels)
    return method.fitted(likelihood, prediction, targets, weights)
