"""A classifier with predictive distributions."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from tfbbb.base.task import Task
from tfbbb.base.types import ArrayLike
from tfbbb.sklearn.estimator import BayesianEstimator

if TYPE_CHECKING:
    from tfbbb.tables import Schema


class BayesianClassifier(ClassifierMixin, BayesianEstimator):
    """Predicts probabilities of classes by a Bayesian neural network.

    `fit` runs the default recipe of jobs (`tfbbb.training.train_table`): members of
    several temperatures leave out folds of the rows, the best temperature by the rows
    left out is kept, and these rows calibrate the predictions. Columns of texts and
    missing values are read as they are. Labels keep their type.

    Example:

    >>> from sklearn.datasets import load_iris
    >>> from tfbbb.sklearn import BayesianClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesianClassifier(members=1, epochs=1).fit(X, y)
    >>> model.classes_, model.predict_proba(X).shape
    (array([0, 1, 2]), (150, 3))

    Args:
        members: As for `BayesianRegressor`, and so are the others.
        hidden_units: Units of the hidden layers.
        layers: The hidden layers, instead of `hidden_units`.
        activation: Activation of the hidden layers.
        posterior: Family q(w) of the weights.
        prior: Prior p(w) of the weights.
        estimator: How the noise of q(w) reaches the outputs in training.
        likelihood: Distribution of the class given the outputs.
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
        random_state: Seed of the folds, initial weights, order of rows and noise.

    Attributes:
        classes_: The labels, sorted.
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

    _task: Task = "classification"

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Goes on with new rows: the posterior becomes the prior.

        The rows of earlier calls are not needed, nor may they come again. The first
        call is that of `fit`, whose network, features, classes and scaling all calls
        share: its rows must have all classes.

        Args:
            X: New rows, as for `fit`.
            y: Their labels, [rows].
            classes: All labels; checked in the first call.
            sample_weight: Their weights, as for `fit`.

        Raises:
            ValueError: The rows of the first call lack a class, or later rows have
                another one.
        """
        if hasattr(self, "_fitted"):
            return self._partial_fit(X, y, sample_weight)
        if classes is not None:
            lacking = np.setdiff1d(np.asarray(classes), np.asarray(y))
            if len(lacking):
                raise ValueError(
                    "The first call of `partial_fit` needs rows of every class. "
                    f"Received: no row of {lacking.tolist()}"
                )
        return self.fit(X, y, sample_weight)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Returns the most probable label of each row, [rows].

        Args:
            X: Rows as for `fit`.
        """
        probabilities = self.predict_dist(X).probabilities
        return self.classes_[np.argmax(probabilities, axis=1)]

    def predict_proba(self, X: ArrayLike) -> Any:
        """Returns probabilities in the order of `classes_`, [rows, classes].

        Args:
            X: Rows as for `fit`.
        """
        return self._with_columns(self._probabilities(X), self.classes_.tolist(), X)

    def predict_log_proba(self, X: ArrayLike) -> np.ndarray:
        """Returns logarithms of probabilities, [rows, classes].

        Args:
            X: Rows as for `fit`.
        """
        return np.log(self._probabilities(X))

    def predict_set(self, X: ArrayLike, level: float = 0.9) -> Any:
        """Returns which classes are in the set that holds y with this probability.

        Args:
            X: Rows as for `fit`.
            level: A probability strictly between 0 and 1.

        Returns:
            Booleans in the order of `classes_`, [rows, classes].
        """
        found = self.predict_dist(X).prediction_set(level)
        return self._with_columns(found, self.classes_.tolist(), X)

    def _probabilities(self, X: ArrayLike) -> np.ndarray:
        found = np.asarray(self.predict_dist(X).probabilities, np.float64)
        return found / found.sum(axis=1, keepdims=True)

    def _target_column(self, values: np.ndarray, *, known: bool = False) -> pa.Array:
        check_classification_targets(values)
        if not known:
            self.classes_ = np.unique(values)
            if len(self.classes_) < 2:
                raise ValueError(
                    "A classifier needs rows of at least two classes. Received: one "
                    f"class, {self.classes_.tolist()[0]!r}"
                )
        codes = np.searchsorted(self.classes_, values)
        codes = np.minimum(codes, len(self.classes_) - 1)
        other = self.classes_[codes] != values
        if np.any(other):
            row = int(np.argmax(other))
            raise ValueError(
                "Every label must be one of the classes of the fit, "
                f"{self.classes_.tolist()}. Received: {values.tolist()[row]!r} in row "
                f"{row}"
            )
        return pa.array(codes)

    def _as_targets(self, drawn: np.ndarray) -> np.ndarray:
        return self.classes_[drawn]

    def _named(self, schema: "Schema") -> "Schema":
        names = tuple(_class_name(label) for label in self.classes_.tolist())
        target = replace(schema.target, categories=names)
        return replace(schema, classes=names, target=target)


def _class_name(label: Any) -> str:
    """Returns a label as the classes of a table are written."""
    if isinstance(label, bool):
        return str(label).lower()
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)
