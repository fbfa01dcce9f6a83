"""A regressor with predictive distributions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from sklearn.base import RegressorMixin

from tfbbb.base.task import Task
from tfbbb.base.types import ArrayLike
from tfbbb.sklearn.estimator import BayesianEstimator

if TYPE_CHECKING:
    from tfbbb.tables import Schema


class BayesianRegressor(RegressorMixin, BayesianEstimator):
    """Predicts a distribution of numbers by a Bayesian neural network.

    `fit` runs the default recipe of jobs (`tfbbb.training.train_table`): members of
    several temperatures leave out folds of the rows, the best temperature by the rows
    left out is kept, and these rows calibrate the predictions. Columns of texts and
    missing values are read as they are.

    Example:

    >>> from sklearn.datasets import load_diabetes
    >>> from tfbbb.sklearn import BayesianRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = BayesianRegressor(members=1, epochs=1).fit(X[:300], y[:300])
    >>> mean, std = model.predict(X[300:], return_std=True)
    >>> mean.shape, std.shape, model.predict_interval(X[300:], level=0.9).shape
    ((142,), (142,), (142, 2))

    Args:
        members: Number of posteriors in the mixture.
        hidden_units: Units of the hidden layers.
        layers: The hidden layers, instead of `hidden_units`.
        activation: Activation of the hidden layers.
        posterior: Family q(w) of the weights.
        prior: Prior p(w) of the weights.
        estimator: How the noise of q(w) reaches the outputs in training.
        likelihood: Distribution of the target given the outputs.
        numeric_encoding: How columns of numbers reach the network.
        text_columns: Columns to read as text although they are mostly numbers.
        columns: What columns are, in place of what their values suggest, such as
            `{"size": "ordered:S,M,L"}`.
        epochs: Passes over the rows.
        steps: Steps of the optimizer, instead of `epochs`.
        batch_size: Rows per step.
        learning_rate: Learning rate of the first step, or it and its decay.
        validation: Which rows to hold out, such as `{"fraction": 0.2}`.
        early_stopping: When to stop, such as `{"patience": 20}`.
        kl_schedule: How the weight of the divergence changes.
        max_seconds: Most time of the training, at least of one step.
        devices: `"one"`, or `"all"` to train on all GPUs that TensorFlow sees.
        recalibration: Calibration of the predictions on held-out rows.
        num_samples: Number of draws from the posterior for predictions; 100 by default.
        random_state: Seed of the folds, initial weights, order of rows and noise: an
            integer, or a `RandomState` from which one is drawn; None for 0.

    All but the last two are the fields of a job of the same names, with the values that
    `tfbbb.training.JobSpec` takes; None leaves a field to the recipe.

    Attributes:
        n_features_in_: Number of features of the fit.
        feature_names_in_: Their names, if these are all texts.
        column_names_: Names of the table that was trained on: `x0`, `x1` and so on of
            an array.
        metrics_: Figures of rows that the members had not seen, as
            `tfbbb.training.TrainedTable.metrics`.
        recipe_: What the training chose, and why.
        judgement_: How the model compares with the mean or the commonest class, and
            with a linear or logistic model: see `tfbbb.evaluation.judge`.
        recalibration_choice_: The recalibration that was chosen, and why.
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
    ) -> Any:
        """Returns quantiles of each row, [rows, Q], or [rows] for one number.

        Args:
            X: Rows as for `fit`.
            quantiles: A probability strictly between 0 and 1, or Q of them.
        """
        found = self.predict_dist(X).quantile(quantiles)[..., 0]
        if np.ndim(quantiles) == 0:
            return found
        names = [f"{level:g}" for level in np.asarray(quantiles)]
        return self._with_columns(found, names, X)

    def predict_interval(self, X: ArrayLike, level: float = 0.9) -> Any:
        """Returns the interval that holds y with this probability, [rows, 2].

        Args:
            X: Rows as for `fit`.
            level: A probability strictly between 0 and 1.
        """
        lower, upper = self.predict_dist(X).interval(level)
        bounds = np.concatenate([lower, upper], axis=1)
        return self._with_columns(bounds, ["lower", "upper"], X)

    def _target_column(self, values: np.ndarray, *, known: bool = False) -> pa.Array:
        return pa.array(np.ascontiguousarray(values, dtype=np.float64))

    def _as_targets(self, drawn: np.ndarray) -> np.ndarray:
        return drawn

    def _named(self, schema: "Schema") -> "Schema":
        return schema
