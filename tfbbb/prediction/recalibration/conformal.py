"""Conformal prediction intervals and sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from tfbbb.base.lazy import keras
from tfbbb.base.nested import leaves
from tfbbb.base.row_weights import weighted_scores
from tfbbb.base.types import ArrayLike, Config, Structure
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.answers import more_probable
from tfbbb.prediction.conformal_reach import conformal_reach
from tfbbb.prediction.recalibration.from_outputs import apply
from tfbbb.prediction.recalibration.recalibration import (
    IDENTITY,
    Recalibration,
    described,
    register,
)
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import conformal_scores

Scores = Sequence[Sequence[float]]
# With 20 rows, intervals and sets up to the level 0.95 come from the group itself.
LEAST_ROWS_OF_GROUP = 20
# Scores of more rows, drawn at random, change the coverage by less than 0.3 %.
MOST_SCORES = 10_000


class Conformal(Recalibration):
    """Computes intervals or sets whose coverage is guaranteed.

    A score says how far a target lies from its prediction. The interval or set of a
    level contains the values whose score is at most the j-th smallest of the scores of
    n held-out rows, `j = ceil((n + 1) * level)` (Vovk et al. 2005). With a `density`,
    the prediction is recalibrated by it first, and the scores are those of the
    recalibrated prediction. The guarantee then assumes a density that was fitted to
    other rows; fitting both to the same n rows changes the coverage by some `1 / n`.

    With groups (Mondrian conformal prediction, Vovk et al. 2005), the scores of each
    group give the intervals or sets of its rows, so the guarantee holds within each
    group. Other groups, such as those with fewer than 20 held-out rows, get the
    intervals or sets of all rows.

    Held-out rows with weights stand for new rows of another distribution (weighted
    conformal prediction, Tibshirani et al. 2019). Then n is the effective number of
    rows, `(sum of w)^2 / sum of w^2`, and the scores are quantiles of weighted ones.
    """

    conformal = True
    # In standard deviations of a normal distribution.
    scores_are_distances = False

    def __init__(
        self,
        scores: Scores = ((),),
        density: Any = None,
        by: str | int | None = None,
        groups: Sequence[str | float | None] = (),
        group_scores: Sequence[Scores] = (),
    ):
        self.scores = _sorted_scores(scores)
        self.by, self.group_values = by, tuple(groups)
        self.group_scores = tuple(map(_sorted_scores, group_scores))
        if isinstance(density, dict):
            density = described(density)
        self._density: Recalibration = IDENTITY if density is None else density
        if self._density.conformal:
            raise ValueError(
                "`density` must be a recalibration of the density, such as "
                f"`VarianceScaling`. Received: density={density!r}"
            )
        if len(self.group_values) != len(self.group_scores) or (
            self.group_values and by is None
        ):
            raise ValueError(
                "Every group needs its scores, and `by` the input that tells the "
                f"groups apart. Received: by={by!r}, {len(self.group_values)} groups, "
                f"scores of {len(self.group_scores)} groups"
            )

    def get_config(self) -> Config:
        config: Config = {"scores": [list(x) for x in self.scores]}
        if self._density != IDENTITY:
            config["density"] = keras.saving.serialize_keras_object(self._density)
        if self.by is not None:
            config["by"] = self.by
            config["groups"] = list(self.group_values)
            config["group_scores"] = [[list(x) for x in s] for s in self.group_scores]
        return config

    @property
    def density(self) -> Recalibration:
        return self._density

    @property
    def acts_on_outputs(self) -> bool:  # type: ignore[override]
        return self._density.acts_on_outputs

    @property
    def least_rows(self) -> int:  # type: ignore[override]
        return self._density.least_rows

    @property
    def num_rows(self) -> int:
        """Number n of held-out rows, or of rows that weighted ones count for."""
        return len(self.scores[0])

    def __repr__(self) -> str:
        num_targets = max(1, len(self.scores) - 1)
        parts = [f"targets={num_targets}", f"rows={self.num_rows}"]
        if self._density != IDENTITY:
            parts.append(f"density={self._density!r}")
        if self.by is not None:
            parts.append(f"by={self.by!r}, groups={list(self.group_values)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def check(self, likelihood: Likelihood) -> None:
        self._density.check(likelihood)

    def score(self, prediction: Predictive, targets: np.ndarray) -> np.ndarray:
        """Returns the scores of targets, [rows, k]."""
        raise NotImplementedError(f"{type(self).__name__} must implement `score`.")

    def fitted(
        self,
        likelihood: Likelihood,
        prediction: Predictive,
        targets: np.ndarray,
        weights: np.ndarray | None = None,
        by: str | int | None = None,
        labels: ArrayLike = None,
    ) -> Self:
        """Returns the recalibration with the scores of held-out rows, by groups.

        `labels` are the values of the input `by` that tells the groups apart, [rows].
        """
        density = self._density
        if density != IDENTITY:
            density = density.fitted(likelihood, prediction, targets, weights)
            prediction = apply(density, likelihood, prediction)
        scores = self.score(prediction, targets)
        if scores.shape[1] > 1:
            # Of all targets together: a box holds them if it holds the farthest one.
            farthest = scores.max(axis=1, keepdims=True)
            scores = np.concatenate([scores, farthest], axis=1)
        values: list[Any] = []
        group_scores = []
        for value, rows in _groups(labels):
            of_group = None if weights is None else weights[rows]
            kept = _kept_scores(scores[rows], of_group)
            if len(kept) >= LEAST_ROWS_OF_GROUP:
                values.append(value)
                group_scores.append(kept.T.tolist())
        kept = _kept_scores(scores, weights).T.tolist()
        return type(self)(kept, _or_none(density), by, values, group_scores)

    def of_target(self, target: int) -> Self:
        density = self._density.of_target(target)
        return self._of_scores(lambda scores: [scores[target]], density)

    def with_density(self, density: Recalibration, factor: float) -> Self:
        """Returns a recalibration with the same groups and another density."""
        factor = factor if self.scores_are_distances else 1.0
        return self._of_scores(
            lambda scores: [[factor * x for x in of_target] for of_target in scores],
            density,
        )

    def _of_scores(
        self, change: Callable[[Scores], Scores], density: Recalibration
    ) -> Self:
        return type(self)(
            change(self.scores),
            _or_none(density),
            self.by,
            self.group_values,
            list(map(change, self.group_scores)),
        )

    def reach(self, level: ArrayLike, groups: np.ndarray | None = None) -> np.ndarray:
        return conformal_reach(self.scores, level, groups, self.group_scores)

    def groups(self, inputs: Structure) -> np.ndarray | None:
        if self.by is None:
            return None
        return self.group_numbers(column_of(inputs, self.by))

    def group_numbers(self, labels: ArrayLike) -> np.ndarray | None:
        # From 1, and 0 for no group.
        column = np.asarray(labels)
        found = np.zeros(len(column), np.int32)
        for number, value in enumerate(self.group_values, start=1):
            missing = value is None
            same = np.isnan(column) if missing else column == column.dtype.type(value)
            found[same] = number
        return found


@register("conformal_intervals")
class ConformalIntervals(Conformal):
    """Computes intervals with guaranteed coverage.

    The score of a held-out row is the least s whose interval between two quantiles of
    the model holds its target (Chernozhukov, Wuethrich and Zhu 2021): of a density

        s_i = |Phi^-1(F_i(y_i))|

    in standard deviations of a normal distribution, with the distribution function
    F_i = P(Y_i <= y); of integers `max(Phi^-1(P(Y_i < y_i)), -Phi^-1(F_i(y_i)), 0)`.
    The interval of a level lies between the quantiles

        F^-1(Phi(-s_(j))) and F^-1(Phi(s_(j))),  j = ceil((n + 1) * level)

    with the j-th smallest score, so no bound is a number that the model cannot give. Of
    a normal prediction it is `mean -/+ s_(j) * stddev`. Beyond s = 4.75 the interval
    there becomes longer about its centre, in proportion to s and within the support;
    for j > n there is no finite interval. If the held-out
    rows and a new row are exchangeable, the interval contains the target with at least
    the probability `level`, and at most `level + 1 / (n + 1)` if no scores are equal,
    as those of integers may be, for any model and any distribution of the data. This
    probability is an average over all rows, not for each x, and holds for each target
    separately. `interval(level, joint=True)` has it for all targets of a row together:
    the score of a row is the greatest of those of its targets.

    Only `interval` changes, unless there is a `density`; quantiles, the density and
    variances remain those of the model.

    Rows that a part of an ensemble was trained on can serve as held-out rows if each is
    predicted by members that never saw it (cross-conformal prediction, Vovk 2015).
    Intervals about the prediction of all members then cover the level approximately,
    because all members together predict a new row better than some of them.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> model.recalibration = tfbbb.recalibration.ConformalIntervals(
    ...     [[0.3, 0.1, 2.0, 1.5]]
    ... )
    >>> prediction = model.predictive([[1.0, 2.0]])
    >>> lower, upper = prediction.interval(0.6)
    >>> (upper - prediction.mean) / prediction.stddev
    array([[1.5]])

    Args:
        scores: The scores of each target, [k, n], zero or positive. Of several
            targets, the greatest score of each row follows, [k + 1, n].
        density: The recalibration of the density, such as `VarianceScaling`; None to
            leave the density.
        by: The input that tells groups apart: the name of a column, or the index of a
            column of an input matrix; None without groups.
        groups: The value of this input in each group with scores of its own; None
            stands for a missing number.
        group_scores: The scores of each group, [k, n] each.

    Raises:
        ValueError: A score is negative or not finite, the targets have different
            numbers of scores, or a group has no scores.
    """

    scores_are_distances = True

    def check(self, likelihood: Likelihood) -> None:
        if likelihood.task != "regression":
            raise ValueError(
                "Classes have no intervals; use `'temperature'` or "
                "`'conformal_sets'`. "
                f"Received: likelihood={type(likelihood).__name__}"
            )
        if not likelihood.ordered:
            raise ValueError(
                "Conformal intervals lie between quantiles, so the likelihood must "
                "have `cdf` and `quantile`, and the attribute `ordered=True`. "
                f"Received: likelihood={type(likelihood).__name__}"
            )
        num_targets = getattr(likelihood, "num_targets", 1)
        needed = num_targets + (num_targets > 1)
        if self.num_rows and len(self.scores) != needed:
            raise ValueError(
                f"The model has {num_targets} targets, and each needs its own scores, "
                f"as do several together. Received: {self!r}"
            )
        super().check(likelihood)

    def score(self, prediction: Predictive, targets: np.ndarray) -> np.ndarray:
        _check_one_place(targets, 2)
        return conformal_scores(prediction, targets)


@register("conformal_sets")
class ConformalSets(Conformal):
    """Computes adaptive prediction sets (Romano, Sesia and Candes 2020).

    The score of a held-out row is the probability of all classes that are more probable
    than its class. The set of a level has the most probable classes until their
    probabilities exceed the j-th smallest score:

        {c: sum of p(c') over all more probable c' <= s_(j)},  j = ceil((n + 1) * level)

    Sets are small where the model is certain, and large where it is not. If the
    held-out rows and a new row are exchangeable, the set contains the class with at
    least the probability `level`, on average over all rows.

    The score is not randomised, so the same row always has the same set, and each set
    has at least one class. Therefore the coverage exceeds the level where many scores
    are equal, above all 0: a model whose most probable class is right more often than
    `level` has sets of one class. Otherwise the coverage is at most
    `level + 1 / (n + 1)`. For j > n the set has all classes.

    Only prediction sets change, unless there is a `density`.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(3)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    >>> model.recalibration = tfbbb.recalibration.ConformalSets([[0.0, 0.3, 1.0]])
    >>> model.predictive([[1.0, 2.0]]).prediction_set(0.75)
    array([[ True,  True,  True]])

    Args:
        scores: The scores of the held-out rows, [1, n], from 0 to 1.
        density: The recalibration of the probabilities: `Temperature`, or None.
        by: As for `ConformalIntervals`, like `groups` and `group_scores`.
        groups: See `by`.
        group_scores: See `by`.

    Raises:
        ValueError: A score is negative or not finite, or a group has no scores.
    """

    def check(self, likelihood: Likelihood) -> None:
        if likelihood.task != "classification":
            raise ValueError(
                "Prediction sets consist of classes; use `'conformal_intervals'` for "
                f"numbers. Received: likelihood={type(likelihood).__name__}"
            )
        if self.num_rows and len(self.scores) != 1:
            raise ValueError(
                "A row has one class, and thus one score. "
                f"Received: scores of {len(self.scores)} targets"
            )
        super().check(likelihood)

    def score(self, prediction: Predictive, targets: np.ndarray) -> np.ndarray:
        _check_one_place(targets, 1)
        before = more_probable(prediction.probabilities)
        return np.take_along_axis(before, targets[:, np.newaxis], axis=1)


def _kept_scores(scores: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Returns the scores, or as many of them as are kept, drawn at random."""
    if weights is not None:
        scores = weighted_scores(scores, weights)
    if len(scores) <= MOST_SCORES:
        return scores
    return np.random.default_rng(0).permutation(scores)[:MOST_SCORES]


def column_of(inputs: Any, by: str | int) -> np.ndarray:
    """Returns the values of an input by its name, or by its index in a matrix."""
    if isinstance(by, str):
        column = np.asarray(inputs[by])
        column = column[:, 0] if column.ndim == 2 else column
    else:
        column = np.asarray(leaves(inputs)[0])[:, by]
    if column.dtype.kind != "O":
        return column
    # TensorFlow's texts.
    return np.array([x.decode() if isinstance(x, bytes) else x for x in column])


def _groups(labels: ArrayLike) -> list[tuple[str | float | None, np.ndarray]]:
    """Returns the value and the rows of each group; None is a missing number."""
    if labels is None:
        return []
    # Missing numbers are equal to each other here.
    values, index = np.unique(np.asarray(labels), return_inverse=True)
    found: list[tuple[str | float | None, np.ndarray]] = []
    for number, value in enumerate(values.tolist()):
        missing = isinstance(value, float) and value != value
        found.append((None if missing else value, np.flatnonzero(index == number)))
    return found


def _or_none(density: Recalibration) -> Recalibration | None:
    return None if density == IDENTITY else density


def _sorted_scores(scores: Scores) -> tuple[tuple[float, ...], ...]:
    values = [np.sort(np.asarray(x, dtype=np.float64)) for x in scores]
    valid = all(
        x.ndim == 1 and len(x) == len(values[0]) and np.all((x >= 0) & (x < np.inf))
        for x in values
    )
    if not values or not valid:
        raise ValueError(
            "`scores` must be lists of finite numbers of at least 0, with the same "
            f"length for each target. Received: scores={scores}"
        )
    return tuple(tuple(x.tolist()) for x in values)


def _check_one_place(targets: np.ndarray, width: int) -> None:
    """Raises ValueError for rows of several places."""
    if targets.ndim != width:
        raise ValueError(
            "Places of one row depend on each other, so their coverage cannot be "
            "guaranteed; conformal intervals and sets need one place per row. "
            f"Received: y of shape {targets.shape}"
        )
