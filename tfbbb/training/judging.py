"""Judges a trained model beside baselines that were fitted to the same rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.base.types import Config
from tfbbb.judging.evaluation.baseline import LINEAR_MODEL
from tfbbb.judging.evaluation.baselines import MOST_ROWS, Baselines
from tfbbb.judging.evaluation.exact_linear import (
    describe_exact_linear_columns,
    find_exact_linear_columns,
    is_nearly_exact,
)
from tfbbb.judging.evaluation.input_encoding import named_columns
from tfbbb.judging.evaluation.judgement import (
    MODEL,
    PARENT,
    judge,
)
from tfbbb.judging.evaluation.predicted_rows import PredictedRows, joined
from tfbbb.judging.types import Inputs
from tfbbb.tables import Schema
from tfbbb.tables.memory_rows import BatchSource

# Of a sample of the training rows, in numbers.
_MOST_NUMBERS = 4_000_000


@dataclass(frozen=True)
class TrainingBaselines:
    """The baselines of a training, beside which its model is judged.

    Attributes:
        schema: The schema of the table.
        rows: The training rows.
        folds: The fold of each row, [repeats, rows]; None for held-out rows.
        inputs: Inputs of the measured rows: the training rows or the held-out ones.
        targets: Their targets.
        of_all: The baselines of all training rows.
        predicted: What baselines that did not see them make of the measured rows.
    """

    schema: Schema
    rows: BatchSource
    folds: np.ndarray | None
    inputs: Inputs
    targets: np.ndarray
    of_all: Baselines
    predicted: dict[str, PredictedRows]

    @classmethod
    def fit(
        cls,
        schema: Schema,
        rows: BatchSource,
        folds: np.ndarray | None,
        inputs: Inputs,
        targets: np.ndarray,
        *,
        discrete: bool,
    ) -> "TrainingBaselines":
        """Fits baselines to the rows that a model was trained on.

        If members left out folds of the rows, the baselines of a row are fitted to the
        other folds. Otherwise they are fitted to the training rows, of which a sample
        of bounded size is read. The arguments are described as attributes; `discrete`
        says whether the targets are whole numbers.
        """
        options: dict[str, Any] = {
            "names": [column.name for column in schema.features],
            "num_classes": len(schema.classes),
            "discrete": discrete,
        }
        if folds is None:
            sample = _sample(rows, len(schema.features))
            of_all = Baselines.fit(*sample, num_rows=rows.num_rows, **options)
            predicted = of_all.predict(inputs, targets)
        else:
            of_all = Baselines.fit(inputs, targets, **options)
            predicted = _cross_fitted(inputs, targets, folds[0], options)
        return cls(schema, rows, folds, inputs, targets, of_all, predicted)

    def judge(
        self,
        model: PredictedRows,
        *,
        places: np.ndarray | None = None,
        parent: PredictedRows | None = None,
    ) -> Config:
        """Compares a model with the baselines on the rows that its metrics are of.

        Args:
            model: The predictions of the measured rows by the model.
            places: The index of each measured row in its table, [n].
            parent: Their predictions by the parent version, if there is one.

        Returns:
            The judgement, as `tfbbb.evaluation.judge` returns it.
        """
        others = dict(self.predicted)
        if parent is not None:
            others[PARENT] = parent
        judgement = judge({MODEL: model, **others}, self.targets, places)
        if not self.schema.classes:
            said = self._exact_linear_sentence()
            judgement["sentences"] += said
            judgement["warnings"] += said
        return judgement

    def _exact_linear_sentence(self) -> list[str]:
        """Returns a sentence if the targets are a linear function of the inputs."""
        linear, encoding = self.predicted.get(LINEAR_MODEL), self.of_all.encoding
        inputs, targets = self.inputs, self.targets
        if linear is None or not is_nearly_exact(linear, targets):
            return []
        if self.folds is None:
            fitted = _sample(self.rows, len(encoding.columns))
            measured = inputs, targets
        else:
            columns = named_columns(inputs, encoding.names)
            left_out = self.folds[0] == 0
            fitted, measured = (
                (
                    {name: values[part] for name, values in columns.items()},
                    targets[part],
                )
                for part in (~left_out, left_out)
            )
        names = find_exact_linear_columns(encoding, *fitted, *measured)
        return [describe_exact_linear_columns(names)] if names else []


def _cross_fitted(
    inputs: Inputs, targets: np.ndarray, folds: np.ndarray, options: dict[str, Any]
) -> dict[str, PredictedRows]:
    """Predicts each row by baselines of the other folds."""
    columns = named_columns(inputs, options["names"])
    groups = [np.flatnonzero(folds == fold) for fold in range(folds.max() + 1)]

    def part(rows: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        return {name: values[rows] for name, values in columns.items()}, targets[rows]

    found = []
    for group in groups:
        others = np.setdiff1d(np.arange(len(targets)), group)
        baselines = Baselines.fit(*part(others), **options)
        found.append(baselines.predict(*part(group)))
    return {name: joined([part[name] for part in found], groups) for name in found[0]}


def _sample(rows: BatchSource, num_features: int) -> tuple[Inputs, np.ndarray]:
    """Returns inputs and targets of some training rows, drawn at random."""
    size = min(MOST_ROWS, max(1, _MOST_NUMBERS // (num_features + 1)), rows.num_rows)
    inputs, targets, *_ = next(iter(rows.batches(size, seed=0)))
    return tree.map_structure(_as_array, inputs), targets.numpy()


def _as_array(tensor: tf.Tensor) -> np.ndarray:
    values = tensor.numpy()
    if tensor.dtype != tf.string:
        return values
    return np.array([text.decode() for text in values], dtype=object)
