"""A regressor with predictive distributions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from tfbbb.base.task import Task
from tfbbb.base.types import ArrayLike
from tfbbb.sklearn.estimator import BayesianEstimator, Scored, documented
from tfbbb.sklearn.given_rows import given_targets
from tfbbb.tables.table_error import TableError

if TYPE_CHECKING:
    from tfbbb.tables import Schema


@documented
class BayesianRegressor(Scored, RegressorMixin, BayesianEstimator):
    """Predicts a distribution of numbers by a Bayesian neural network.

    `fit` runs the default recipe of jobs (`tfbbb.training.train_table`): members of
    several temperatures leave out folds of the rows, the best temperature by the rows
    left out is kept, and these rows calibrate the predictions. Columns of texts and
    missing values are read as they are.

    Example:

    >>> from sklearn.datasets import load_diabetes
    >>> from tfbbb.sklearn import BayesianRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = BayesianRegressor(members=1, likelihood="normal", epochs=1)
    >>> model = model.fit(X[:300], y[:300])
    >>> mean, std = model.predict(X[300:], return_std=True)
    >>> mean.shape, std.shape, model.predict_interval(X[300:], level=0.9).shape
    ((142,), (142,), (142, 2))

    Args:
        {parameters}

    All but the last two are the fields of a job of the same names, with the values that
    `tfbbb.training.JobSpec` takes; None leaves a field to the recipe.

    Attributes:
        {attributes}
    """

    _task: Task = "regression"

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Goes on with new rows: the posterior becomes the prior.

        The rows of earlier calls are not needed, nor may they come again. The first
        call is that of `fit`, whose network, features and scaling all calls share.

        Args:
            X: New rows, as for `fit`.
            y: Their targets, as for `fit`.
            sample_weight: Their weights, as for `fit`.
        """
        if not hasattr(self, "_fitted"):
            return self.fit(X, y, sample_weight)
        return self._partial_fit(X, y, sample_weight)

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Returns R² of the means.

        With an `event`, it is the concordance of the times: nobody knows the errors of
        rows that are still running.

        Args:
            X: Rows as for `fit`.
            y: Targets, [rows], as for `fit`.
            sample_weight: Weight of each row, [rows]; the concordance takes none.
        """
        if getattr(self, "event", None) is None:
            return super().score(X, y, sample_weight)
        from tfbbb.prediction.survival_scores import concordance

        values = given_targets(self, y, len(np.asarray(y)))
        found = concordance(self.predict_dist(X), self._with_events(X, values))
        return 0.5 if found is None else found

    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Returns the mean of each row, [rows], of k targets [rows, k].

        Args:
            X: Rows as for `fit`.
            return_std: Whether to return the standard deviations as well, of the same
                shape.
        """
        prediction = self.predict_dist(X)
        mean = _of_rows(np.asarray(prediction.mean, np.float64))
        if not return_std:
            return mean
        return mean, _of_rows(np.asarray(prediction.stddev, np.float64))

    def predict_quantiles(
        self, X: ArrayLike, quantiles: float | Sequence[float] = (0.05, 0.5, 0.95)
    ) -> np.ndarray:
        """Returns quantiles of each row, [rows, Q], or [rows] for one number.

        Of several targets, an axis of these follows.

        Args:
            X: Rows as for `fit`.
            quantiles: A probability strictly between 0 and 1, or Q of them.
        """
        return _of_rows(self.predict_dist(X).quantile(quantiles))

    def predict_interval(
        self, X: ArrayLike, level: float = 0.9, joint: bool = False
    ) -> np.ndarray:
        """Returns the interval that holds y with this probability, [rows, 2].

        Of k targets it is [rows, 2, k].

        Args:
            X: Rows as for `fit`.
            level: A probability strictly between 0 and 1.
            joint: Whether the intervals of all targets of a row hold together: see
                `tfbbb.Predictive.interval`.
        """
        ends = self.predict_dist(X).interval(level, joint=joint)
        return _of_rows(np.stack(ends, axis=1))

    def _target_columns(
        self,
        values: np.ndarray,
        *,
        known: bool = False,
        levels: Sequence[object] | None = None,
    ) -> list[pa.Array]:
        try:
            numbers = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
            return [pa.array(np.ascontiguousarray(column)) for column in numbers.T]
        except (TypeError, ValueError):
            raise TableError(
                "The targets of a regressor must be numbers. "
                f"Received: {values[0]!r} in row 0"
            ) from None

    def _known_targets(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        targets = np.stack(self._target_columns(values), axis=-1)
        return targets, np.zeros(len(values), dtype=bool)

    def _as_targets(self, drawn: np.ndarray) -> np.ndarray:
        return _of_rows(drawn)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _named(self, schema: "Schema") -> "Schema":
        return schema


def _of_rows(values: np.ndarray) -> np.ndarray:
    """Returns values without the axis of targets if there is one target."""
    return values[..., 0] if values.shape[-1] == 1 else values
