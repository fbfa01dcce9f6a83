"""Judges a trained model beside baselines that were fitted to the same rows."""

from typing import Any

import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.base.types import Config
from tfbbb.judging.evaluation.baselines import MOST_ROWS, Baselines
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


def judge_training(
    schema: Schema,
    rows: BatchSource,
    folds: np.ndarray | None,
    inputs: Inputs,
    targets: np.ndarray,
    model: PredictedRows,
    *,
    discrete: bool,
    places: np.ndarray | None = None,
    parent: PredictedRows | None = None,
) -> tuple[Config, Baselines]:
    """Compares a model with baselines on the rows that its metrics are of.

    If members left out folds of the rows, the baselines of a row are fitted to the
    other folds. Otherwise they are fitted to the training rows, of which a sample of
    bounded size is read.

    Args:
        schema: The schema of the table.
        rows: The training rows.
        folds: The fold of each row, [repeats, rows]; None for held-out rows.
        inputs: Inputs of the measured rows: the training rows or the held-out ones.
        targets: Their targets.
        model: Their predictions by the model.
        discrete: Whether the targets are whole numbers.
        places: The index of each measured row in its table, [n].
        parent: Predictions of the measured rows by the parent version, if there is one.

    Returns:
        The judgement, as `tfbbb.evaluation.judge` returns it, and the baselines of all
        training rows.
    """
    options: dict[str, Any] = {
        "names": [column.name for column in schema.features],
        "num_classes": len(schema.classes),
        "discrete": discrete,
    }
    if folds is None:
        baselines = Baselines.fit(
            *_sample(rows, len(schema.features)), num_rows=rows.num_rows, **options
        )
        others = baselines.predict(inputs, targets)
    else:
        baselines = Baselines.fit(inputs, targets, **options)
        others = _cross_fitted(inputs, targets, folds[0], options)
    if parent is not None:
        others[PARENT] = parent
    return judge({MODEL: model, **others}, targets, places), baselines


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
