"""A regressor with predictive distributions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
from sklearn.base import RegressorMixin

from tfbbb.base.task import Task
from tfbbb.base.types import ArrayLike
from tfbbb.sklearn.estimator import BayesianEstimator, Scored, documented
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
            y: Their targets, [rows].
            sample_weight: Their weights, as for `fit`.
        """
        if not hasattr(self, "_fitted"):
            return self.fit(X, y, sample_weight)
        return self._partial_fit(X, y, sample_weight)

    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Returns the mean of each row, [rows].

        Args:
            X: Rows as for `fit`.
            return_std: Whether to return the standard deviations as well, [rows].
        """
        prediction = self.predict_dist(X)
        mean = np.asarray(prediction.mean[:, 0], np.float64)
        if not return_std:
            return mean
        return mean, np.asarray(prediction.stddev[:, 0], np.float64)

    def predict_quantiles(
        self, X: ArrayLike, quantiles: float | Sequence[float] = (0.05, 0.5, 0.95)
    ) -> np.ndarray:
        """Returns quantiles of each row, [rows, Q], or [rows] for one number.

        Args:
            X: Rows as for `fit`.
            quantiles: A probability strictly between 0 and 1, or Q of them.
        """
        return self.predict_dist(X).quantile(quantiles)[..., 0]

    def predict_interval(self, X: ArrayLike, level: float = 0.9) -> np.ndarray:
        """Returns the interval that holds y with this probability, [rows, 2].

        Args:
            X: Rows as for `fit`.
            level: A probability strictly between 0 and 1.
        """
        return np.concatenate(self.predict_dist(X).interval(level), axis=1)

    def _target_column(
        self,
        values: np.ndarray,
        *,
        known: bool = False,
        levels: Sequence[object] | None = None,
    ) -> pa.Array:
        try:
            return pa.array(np.ascontiguousarray(values, dtype=np.float64))
        except (TypeError, ValueError):
            raise TableError(
                "The targets of a regressor must be numbers. "
                f"Received: {values[0]!r} in row 0"
            ) from None

    def _known_targets(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        targets = np.asarray(self._target_column(values))
        return targets, np.zeros(len(values), dtype=bool)

    def _as_targets(self, drawn: np.ndarray) -> np.ndarray:
        return drawn

    def _named(self, schema: "Schema") -> "Schema":
        return schema
