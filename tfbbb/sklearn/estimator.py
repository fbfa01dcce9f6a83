"""What the estimators of numbers and of classes share."""

import inspect
import os
import textwrap
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tfbbb.base.numbers import int32
from tfbbb.base.row_weights import one_weight
from tfbbb.base.task import MIN_ROWS, Task
from tfbbb.base.types import ArrayLike
from tfbbb.sklearn.fitted import Fitted
from tfbbb.sklearn.given_rows import (
    columns_without_values,
    given_targets,
    levels_in_order,
    numbers_as_texts,
    to_table,
)
from tfbbb.sklearn.job_fields import PARAMETERS, job_spec
from tfbbb.tables.column_names import list_names
from tfbbb.tables.table_error import TableError

if TYPE_CHECKING:
    from tfbbb.model.bayesian_model import BayesianModel
    from tfbbb.prediction import Predictive
    from tfbbb.tables import Schema
    from tfbbb.training import JobSpec, TrainedTable

_NUM_SAMPLES = 100
Estimator = TypeVar("Estimator", bound="BayesianEstimator")
_SIGNATURE = inspect.Signature(
    [
        Parameter("self", Parameter.POSITIONAL_ONLY),
        *(Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in PARAMETERS),
    ]
)


# The parts of docstrings that all estimators share.
_SHARED = {
    "    {parameters}": "\n".join(
        textwrap.fill(f"    {name}: {text}", 84, subsequent_indent=" " * 8)
        for name, text in PARAMETERS.items()
    ),
    "{attributes}": """n_features_in_: Number of features of the fit.
    feature_names_in_: Their names, if these are all texts.
    column_names_: Names of the table that was trained on: `x0`, `x1` and so on of an
        array.
    metrics_: Figures of rows that the members had not seen, as
        `tfbbb.training.TrainedTable.metrics`.
    recipe_: What the training chose, and why.
    judgement_: How the model compares with the mean or the commonest class, and with
        a linear or logistic model: see `tfbbb.evaluation.judge`.
    recalibration_choice_: The recalibration that was chosen, and why.""",
}


def documented(estimator: type[Estimator]) -> type[Estimator]:
    """Puts the parameters and attributes of all estimators into a docstring.

    It has the indentation that Python 3.13 leaves, in any version.
    """
    described = inspect.cleandoc(estimator.__doc__ or "")
    for place, text in _SHARED.items():
        described = described.replace(place, text)
    estimator.__doc__ = described
    return estimator


class Scored:
    """Reads the targets of `score` as `fit` reads them."""

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Returns the accuracy of labels, or R² of the means of numbers.

        Args:
            X: Rows as for `fit`.
            y: Targets as for `fit`; of several, R² is the mean of theirs.
            sample_weight: Weight of each row, [rows].
        """
        values = given_targets(self, y, len(np.asarray(y)))
        # The mixin of scikit-learn, which each estimator names next, has `score`.
        return float(super().score(X, values, sample_weight))  # type: ignore[misc]


class BayesianEstimator(BaseEstimator):
    """A Bayesian neural network for a table, trained by the default recipe of jobs.

    The parameters are the fields of a `tfbbb.training.JobSpec`; None leaves a field to
    the recipe. `BayesianRegressor` and `BayesianClassifier` say more.
    """

    _task: Task

    random_state: object
    num_samples: int | None

    def __init__(self, **parameters: object):
        given = _SIGNATURE.bind(self, **parameters)
        given.apply_defaults()
        for name in PARAMETERS:
            setattr(self, name, given.arguments[name])

    # `get_params` reads the names from here.
    __init__.__signature__ = _SIGNATURE  # type: ignore[attr-defined]

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Trains the network.

        Args:
            X: A frame of pandas, polars or Arrow, with columns of numbers and of texts
                in which values may be missing, or an array [rows, features].
            y: Targets, [rows], or for a regressor [rows, k]: columns of numbers that
                are predicted together.
            sample_weight: Weight of each row, [rows]. A row of weight 2 counts as two
                rows, a row of weight 0 is left out: see
                `tfbbb.training.train_table`, `row_weights`.

        Returns:
            The estimator.

        Raises:
            ValueError: A parameter is invalid, or the rows cannot be used.
            TrainingDivergedError: The loss is not finite; lower the learning rate.
        """
        # Values of the parameters are refused before the rows are read.
        job_spec(self, target="y", task=self._task)
        if self.num_samples is not None:
            int32("num_samples", self.num_samples, least=2)
        # A fit that fails leaves no model of other features or classes behind.
        self.__dict__.pop("_fitted", None)
        table = to_table(self, X, reset=True, fewest=MIN_ROWS)
        self.column_names_ = table.column_names
        values = given_targets(self, y, table.num_rows)
        table, values, weights = _weighty(table, values, sample_weight)
        target = _target_names(y, values, self.column_names_)
        spec = job_spec(self, target=target, task=self._task)
        # Named, so that no column is left out as useless: a selection of columns is
        # a step of a pipeline.
        ignored = {name for name, kind in spec.columns.items() if kind == "ignore"}
        without = spec.not_features | ignored
        features = [name for name in self.column_names_ if name not in without]
        features, remarks = _with_values(table, features)
        spec = job_spec(self, target=target, task=self._task, features=features)
        columns = self._target_columns(values, levels=levels_in_order(y))
        self._train(_with_columns(table, target, columns), spec, weights, None)
        schema = self._fitted.trained.schema
        remarks += [reason for _, reason in schema.left_out]
        target_remarks = [
            f"Target {column.name!r}: {remark}"
            for column in schema.target_columns
            for remark in column.remarks
        ]
        for remark in (*remarks, *target_remarks):
            warnings.warn(remark, stacklevel=2)
        self.recipe_["remarks"] = [*self.recipe_["remarks"], *remarks]
        return self

    def _partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> Self:
        parent = self._fitted.trained
        table = to_table(self, X, reset=False, fewest=2)
        table = numbers_as_texts(table, parent.schema.features)
        values = given_targets(self, y, table.num_rows)
        table, values, weights = _weighty(table, values, sample_weight)
        spec = job_spec(
            self,
            target=parent.spec.target,
            task=self._task,
            features=[column.name for column in parent.schema.predictors],
        )
        schedule = spec.training.kl_schedule
        if schedule is not None and not schedule.make().counts_rows_once:
            # Only the first training may count rows more than once.
            training = spec.training.model_copy(update={"kl_schedule": None})
            spec = spec.model_copy(update={"training": training})
        columns = self._target_columns(values, known=True)
        table = _with_columns(table, spec.targets, columns)
        self._train(table, spec, weights, parent)
        return self

    def _train(
        self,
        table: pa.Table,
        spec: "JobSpec",
        weights: np.ndarray | None,
        parent: "TrainedTable | None",
    ) -> None:
        from tfbbb.training import train_table
        from tfbbb.training.parent_version import ParentVersion

        start_from = None
        if parent is not None:
            start_from = ParentVersion.from_model(
                parent.model, parent.schema, parent.spec
            )
        trained = train_table(table, spec, row_weights=weights, start_from=start_from)
        self._fitted = Fitted(trained)
        self.metrics_ = dict(trained.metrics)
        self.recipe_ = dict(trained.recipe)
        self.judgement_ = dict(trained.judgement)
        if trained.recipe["out_of_time"]:
            warnings.warn(
                f"The time was over after {trained.recipe['steps']} steps; the first "
                "takes seconds, and `judgement_` tells what the model is worth. "
                f"Raise `max_seconds`. Received: max_seconds={self.max_seconds!r}",
                stacklevel=3,
            )
        self.recalibration_choice_ = dict(trained.recalibration_choice)

    def predict_dist(self, X: ArrayLike) -> "Predictive":
        """Returns the posterior predictive distribution of each row.

        Args:
            X: Rows as for `fit`.

        Returns:
            A `tfbbb.Predictive`, of the indices of `classes_` for classes.
        """
        inputs = self._inputs(X)
        # The answer for a row depends on no other row.
        return self._fitted.trained.model.predictive(
            inputs,
            num_samples=_NUM_SAMPLES if self.num_samples is None else self.num_samples,
            method="local",
        )

    def log_prob(self, X: ArrayLike, y: ArrayLike) -> np.ndarray:
        """Returns log p(y | x, data) of each row, [rows], in nats.

        Args:
            X: Rows as for `fit`.
            y: Targets as for `fit`. A row whose class the fit did not have gets NaN,
                with a warning that counts such rows.
        """
        prediction = self.predict_dist(X)
        values = given_targets(self, y, len(prediction))
        targets, unseen = self._known_targets(values)
        if getattr(self, "event", None) is not None:
            targets = self._with_events(X, targets)
        found = np.array(prediction.log_prob(targets))
        found[unseen] = np.nan
        return found

    def familiarity(self, X: ArrayLike) -> np.ndarray | None:
        """Returns the familiarity of each row, [rows], from 0 to 1.

        Of rows like those of the fit, 5 % have .05 or less: see `tfbbb.Familiarity`.
        None after a fit of fewer than 20 rows, or of more than 1250 columns.

        Args:
            X: Rows as for `fit`.
        """
        inputs = self._inputs(X)
        familiarity = self._fitted.trained.model.familiarity
        return None if familiarity is None else familiarity(inputs).numpy()

    def _with_events(self, X: ArrayLike, values: np.ndarray) -> np.ndarray:
        """Returns times and events, [rows, 2], the events from the rows."""
        event = self._fitted.trained.schema.event
        assert event is not None
        table = to_table(self, X, reset=False, fewest=1)
        events = event.values(table)
        return np.stack([np.asarray(values, np.float64).ravel(), events], axis=1)

    def _inputs(self, X: ArrayLike) -> np.ndarray | dict[str, np.ndarray]:
        """Returns rows as inputs of the model."""
        check_is_fitted(self)
        schema = self._fitted.trained.schema
        table = to_table(self, X, reset=False, fewest=1)
        table = numbers_as_texts(table, schema.features)
        return schema.inputs(table, strict=True)

    def sample(self, X: ArrayLike, n: int = 1, seed: int | None = None) -> np.ndarray:
        """Draws n targets of each row from the predictive distribution.

        Args:
            X: Rows as for `fit`.
            n: Number of draws.
            seed: Seed of the draws; None for the same ones each time.

        Returns:
            [n, rows], of the type of `classes_` for classes; of k targets
            [n, rows, k].
        """
        return self._as_targets(self.predict_dist(X).sample(n, seed=seed))

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "saved_model",
        **options: Any,
    ) -> Path:
        """Writes the next version of the model under a directory, as a SavedModel.

        It needs nothing but TensorFlow, takes the columns of `X`, and gives the same
        answers: see `tfbbb.load`. Other formats are written at `path` itself.

        Args:
            path: Directory of the model, e.g. `saved_models/NAME`; created if missing.
                For other formats, where to write; nothing may be there yet.
            format: `"saved_model"`, `"onnx"` or `"mlflow"`: see
                `tfbbb.BayesianModel.export_predictive`.
            **options: Options of the format, such as `method` and `num_samples`.

        Returns:
            The directory of the new version, `path/VERSION`; for other formats `path`.

        Raises:
            ValueError: The format is unknown, or does not suit the model.
        """
        check_is_fitted(self)
        trained = self._fitted.trained
        named = replace(trained, schema=self._named(trained.schema))
        return named.export(path, format=format, **options)

    def to_keras(self) -> "BayesianModel":
        """Returns the trained `tfbbb.BayesianModel`, not a copy.

        Its inputs are what `predict_dist` passes: a matrix if all features are numbers
        and none was missing, else a dictionary of columns.
        """
        check_is_fitted(self)
        return self._fitted.trained.model

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags

    @abstractmethod
    def _target_columns(
        self,
        values: np.ndarray,
        *,
        known: bool = False,
        levels: Sequence[object] | None = None,
    ) -> list[pa.Array]:
        """Returns targets as the columns that training reads."""

    @abstractmethod
    def _known_targets(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns targets as the model has them, and which [rows] the fit lacked."""

    @abstractmethod
    def _as_targets(self, drawn: np.ndarray) -> np.ndarray:
        """Returns draws of the model in the type of `y`."""

    @abstractmethod
    def _named(self, schema: "Schema") -> "Schema":
        """Returns a schema whose classes have the names of the labels."""


def _weighty(
    table: pa.Table, values: np.ndarray, sample_weight: ArrayLike | None
) -> tuple[pa.Table, np.ndarray, np.ndarray | None]:
    """Returns the rows whose weight is not 0, with their weights."""
    weights = one_weight(sample_weight, table.num_rows)
    if weights is None or weights.all():
        return table, values, weights
    kept = weights > 0
    return table.filter(kept), values[kept], weights[kept]


def _with_values(
    table: pa.Table, features: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Returns the features that have a value, and remarks on those that have none."""
    empty = [name for name in columns_without_values(table) if name in features]
    kept = [name for name in features if name not in empty]
    if not empty:
        return kept, []
    if not kept:
        raise TableError(
            "No column of the rows has a value, so there is nothing to learn from."
        )
    names = list_names(empty)
    remark = (
        f"Column {names} has no value in the rows of the fit, so it is left out, and "
        "ignored in the rows to predict."
        if len(empty) == 1
        else f"The columns {names} have no value in the rows of the fit, so they are "
        "left out, and ignored in the rows to predict."
    )
    return kept, [remark]


def _target_names(
    y: ArrayLike, values: np.ndarray, features: Sequence[str]
) -> tuple[str, ...]:
    """Returns the names of a series or a frame, or `y`, `y0` and so on."""
    given = [getattr(y, "name", None)]
    names = ["y"]
    if values.ndim == 2:
        names = [f"y{place}" for place in range(values.shape[1])]
        given = list(getattr(y, "columns", names))
    found: list[str] = []
    for name, default in zip(given, names, strict=True):
        name = name if isinstance(name, str) and name.strip() else default
        while name in features or name in found:
            name += "_"
        found.append(name)
    return tuple(found)


def _with_columns(
    table: pa.Table, names: Sequence[str], columns: Sequence[pa.Array]
) -> pa.Table:
    for name, column in zip(names, columns, strict=True):
        table = table.append_column(name, column)
    return table
