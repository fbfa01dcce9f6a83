"""A classifier with predictive distributions."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from tfbbb.base.task import Task
from tfbbb.base.types import ArrayLike
from tfbbb.sklearn.estimator import BayesianEstimator, Scored, documented
from tfbbb.tables.values import cell_text

if TYPE_CHECKING:
    from tfbbb.tables import Schema


@documented
class BayesianClassifier(Scored, ClassifierMixin, BayesianEstimator):
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
        {parameters}

    All but the last two are the fields of a job of the same names, with the values that
    `tfbbb.training.JobSpec` takes; None leaves a field to the recipe.

    Attributes:
        classes_: The labels, sorted, or in the order of their categories.
        {attributes}
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

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Returns probabilities in the order of `classes_`, [rows, classes].

        Args:
            X: Rows as for `fit`.
        """
        found = np.asarray(self.predict_dist(X).probabilities, np.float64)
        return found / found.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: ArrayLike) -> np.ndarray:
        """Returns logarithms of probabilities, [rows, classes].

        Args:
            X: Rows as for `fit`.
        """
        return np.log(self.predict_proba(X))

    def predict_set(self, X: ArrayLike, level: float = 0.9) -> np.ndarray:
        """Returns which classes are in the set that holds y with this probability.

        Args:
            X: Rows as for `fit`.
            level: A probability strictly between 0 and 1.

        Returns:
            Booleans in the order of `classes_`, [rows, classes].
        """
        return self.predict_dist(X).prediction_set(level)

    def _target_columns(
        self,
        values: np.ndarray,
        *,
        known: bool = False,
        levels: Sequence[object] | None = None,
    ) -> list[pa.Array]:
        check_classification_targets(values)
        if not known:
            found = np.unique(values)
            if levels is not None:
                known_labels = set(found.tolist())
                present = [level for level in levels if level in known_labels]
                found = np.array(present, found.dtype)
            self.classes_ = found
            if len(self.classes_) < 2:
                raise ValueError(
                    "A classifier needs rows of at least two classes. Received: one "
                    f"class, {self.classes_.tolist()[0]!r}"
                )
        codes, other = self._codes(values)
        if np.any(other):
            row = int(np.argmax(other))
            raise ValueError(
                "Every label must be one of the classes of the fit, "
                f"{self.classes_.tolist()}. Received: {values.tolist()[row]!r} in row "
                f"{row}"
            )
        return [pa.array(codes)]

    def _codes(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns indices of labels, and which labels [rows] the fit did not have."""
        places = {label: place for place, label in enumerate(self.classes_.tolist())}
        codes = np.array([places.get(label, -1) for label in values.tolist()])
        return np.maximum(codes, 0), codes < 0

    def _known_targets(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        codes, unseen = self._codes(values)
        if unseen.any():
            row, number = int(np.argmax(unseen)), int(unseen.sum())
            have = "1 row has a class" if number == 1 else f"{number} rows have a class"
            warnings.warn(
                f"{have} that the fit did not have, such as "
                f"{values.tolist()[row]!r} in row {row}; the log probability of such a "
                "row is NaN.",
                stacklevel=3,
            )
        return codes, unseen

    def _as_targets(self, drawn: np.ndarray) -> np.ndarray:
        return self.classes_[drawn]

    def _named(self, schema: "Schema") -> "Schema":
        names = tuple(map(cell_text, self.classes_.tolist()))
        target = replace(schema.target, categories=names)
        return replace(schema, classes=names, target=target)
