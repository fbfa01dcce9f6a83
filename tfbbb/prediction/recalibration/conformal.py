"""The base class of conformal recalibrations."""

from collections.abc import Sequence
from typing import Any, Self

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.row_weights import weighted_scores
from tfbbb.base.types import ArrayLike, Config, Structure, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.conformal_reach import conformal_reach
from tfbbb.prediction.inputs import input_tensors
from tfbbb.prediction.recalibration.applied import apply
from tfbbb.prediction.recalibration.recalibration import IDENTITY, Recalibration
from tfbbb.prediction.result import Predictive

Scores = Sequence[Sequence[float]]
# With 20 rows, intervals and sets up to the level 0.95 come from the group itself.
LEAST_ROWS_OF_GROUP = 20
# Scores of more rows, drawn at random, change the coverage by less than 0.3 %.
MOST_SCORES = 10_000


class Conformal(Recalibration):
    """Computes intervals or sets whose coverage is guaranteed.

    A score says how far a target lies from its prediction. The interval or set of a
    level contains the values whose score is at most the j-th smallest of the scores of
    n held-out rows, `j = ceil((n + 1) * level)` (Vovk et al. 2005). If these rows and a
    new row are exchangeable, it contains the target with at least the probability
    `level`, and at most `level + 1 / (n + 1)` if no scores are equal, for any model and
    any distribution of the data.

    With groups (Mondrian conformal prediction, Vovk et al. 2005), the scores of each
    group give the intervals or sets of its rows, so the guarantee holds within each
    group. Other groups, such as those with fewer than 20 held-out rows, get the
    intervals or sets of all rows.

    Held-out rows with weights stand for new rows of another distribution: that of all
    rows, if the weights undo how rows were chosen, or another one, if they are the
    ratios of the densities of rows (weighted conformal prediction, Tibshirani et al.
    2019). Then n is the effective number of rows,
    `(sum of w)^2 / sum of w^2`, and the scores are quantiles of weighted ones.

    With a `density`, the prediction is recalibrated by it first: the density decides
    about everything but the intervals or sets, and the scores are those of the
    recalibrated prediction. The guarantee then assumes a density that was fitted to
    other rows; fitting both to the same n rows changes the coverage by some `1 / n`.

    Args:
        scores: The scores of each target, [k, n], zero or positive.
        density: The recalibration of the density; None to leave it.
        by: The input that tells the groups apart: the name of a column, or the index
            of a column of a matrix; None without groups.
        groups: The value of this input in each group; None is a missing number.
        group_scores: The scores of each group, [k, n] each.
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
            density = keras.saving.deserialize_keras_object(density)
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
        """Whether the density changes the outputs of the network."""
        return self._density.acts_on_outputs

    @property
    def least_rows(self) -> int:  # type: ignore[override]
        """Smallest number of rows for a fit: that of the density."""
        return self._density.least_rows

    @property
    def num_rows(self) -> int:
        """Number n of held-out rows, or of rows that weighted ones count for."""
        return len(self.scores[0])

    def __repr__(self) -> str:
        parts = [f"targets={len(self.scores)}", f"rows={self.num_rows}"]
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

        Args:
            likelihood: p(y | outputs).
            prediction: The prediction of the held-out rows, not recalibrated.
            targets: The targets of these rows.
            weights: The weight of each row, [rows]; None for 1.
            by: The input that tells the groups apart; None without groups.
            labels: The values of this input, [rows].
        """
        density = self._density
        if density != IDENTITY:
            density = density.fitted(likelihood, prediction, targets, weights)
            prediction = apply(density, likelihood, prediction)
        scores = self.score(prediction, targets)
        values: list[Any] = []
        group_scores = []
        for value, rows in _groups(labels):
            of_group = None if weights is None else weights[rows]
            kept = _kept_scores(scores[rows], of_group)
            if len(kept) >= LEAST_ROWS_OF_GROUP:
                values.append(value)
                group_scores.append(kept.T.tolist())
        return type(self)(
            _kept_scores(scores, weights).T.tolist(),
            None if density == IDENTITY else density,
            by,
            values,
            group_scores,
        )

    def with_density(self, density: Recalibration, factor: float) -> Self:
        """Returns a recalibration with the same groups and another density."""
        factor = factor if self.scores_are_distances else 1.0
        return type(self)(
            _times(factor, self.scores),
            None if density == IDENTITY else density,
            self.by,
            self.group_values,
            [_times(factor, scores) for scores in self.group_scores],
        )

    def reach(self, level: ArrayLike, groups: Tensor | None = None) -> tf.Tensor:
        return conformal_reach(self.scores, level, groups, self.group_scores)

    def groups(self, inputs: Structure) -> tf.Tensor | None:
        if self.by is None:
            return None
        return group_numbers(self, _column(inputs, self.by))


def _kept_scores(scores: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Returns the scores, or as many of them as are kept, drawn at random."""
    if weights is not None:
        scores = weighted_scores(scores, weights)
    if len(scores) <= MOST_SCORES:
        return scores
    return np.random.default_rng(0).permutation(scores)[:MOST_SCORES]


def group_numbers(recalibration: Conformal, labels: ArrayLike) -> tf.Tensor:
    """Returns the index of each row's group, from 1, and 0 for no group, [rows].

    Args:
        recalibration: The recalibration with the groups.
        labels: Values of the input that tells the groups apart, [rows].
    """
    column = tf.convert_to_tensor(labels)
    found = tf.zeros([tf.shape(column)[0]], tf.int32)
    for number, value in enumerate(recalibration.group_values, start=1):
        found = tf.where(_is_in_group(column, value), number, found)
    return found


def labels_of(model: keras.Model, x: ArrayLike, by: str | int) -> np.ndarray:
    """Returns the values of the input that tells groups apart, [rows].

    They have the data type in which the model reads them.
    """
    tensors = input_tensors(model, x)
    try:
        values = _column(tensors, by).numpy()
    except (KeyError, IndexError, TypeError, ValueError, tf.errors.OpError):
        raise ValueError(
            "`by` must be the name of an input column, or the index of a column of the "
            f"input matrix. Received: by={by!r}"
        ) from None
    if values.dtype.kind == "O":
        return np.array([text.decode() for text in values])
    return np.asarray(values)


def _column(inputs: ArrayLike, by: str | int) -> Tensor:
    if isinstance(by, str):
        column = tf.convert_to_tensor(inputs[by])
        return column[:, 0] if len(column.shape) == 2 else column
    return tf.convert_to_tensor(tf.nest.flatten(inputs)[0])[:, by]


def _is_in_group(column: tf.Tensor, value: str | float | None) -> tf.Tensor:
    if value is None:
        return tf.math.is_nan(column)
    return tf.equal(column, tf.constant(value, column.dtype))


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


def _times(factor: float, scores: Scores) -> Scores:
    return [[factor * x for x in of_target] for of_target in scores]


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


def check_one_place(targets: np.ndarray, width: int) -> None:
    """Raises ValueError for rows of several places."""
    if targets.ndim != width:
        raise ValueError(
            "Places of one row depend on each other, so their coverage cannot be "
            "guaranteed; conformal intervals and sets need one place per row. "
            f"Received: y of shape {targets.shape}"
        )
