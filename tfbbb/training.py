"""From a table to a trained model and its held-out figures."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import ceil
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pyarrow as pa

from tfbbb.data import Schema, preprocessing, split
from tfbbb.data.batches import shuffled_batches
from tfbbb.data.target import Task
from tfbbb.diverged_training import StopWhereDiverged, TrainingDivergedError
from tfbbb.export.versions import next_version
from tfbbb.layers import DenseVariational
from tfbbb.likelihoods import Categorical, Normal
from tfbbb.model import BayesianModel

# A third of it costs held-out log-likelihood on every table tried (diabetes, Boston,
# concrete, energy, wine, yacht).
_STEPS = 6000
_FEWEST_EPOCHS = 10
_MOST_VALIDATIONS = 20


@dataclass(frozen=True)
class TrainedTable:
    """A model trained on a table.

    Attributes:
        model: The model, in raw units.
        schema: What it knows about the table.
        training_rows: Indices of the rows it was trained on.
        held_out_rows: Indices of the other rows.
        metrics: Held-out figures: `rmse` in the units of the target,
            `log_likelihood` per row in nats and `coverage_90`, the share of targets
            in their 90 % interval; for classes `accuracy` and `log_likelihood`.
    """

    model: BayesianModel
    schema: Schema
    training_rows: np.ndarray
    held_out_rows: np.ndarray
    metrics: Mapping[str, float]

    def export(self, root: str | os.PathLike[str]) -> Path:
        """Writes the next version of the model under a directory.

        Args:
            root: Directory of the model, e.g. `saved_models/NAME`; it is made where
                there is none.

        Returns:
            The directory of the new version, `root/VERSION`.
        """
        while True:
            path = next_version(root)
            try:
                self.model.export_predictive(
                    path, schema=self.schema, metrics=self.metrics
                )
            except FileExistsError:
                # Another process has taken the version meanwhile.
                if not path.exists():
                    raise
            else:
                return path


def train_table(
    table: pa.Table,
    target: str,
    *,
    task: Task | None = None,
    features: Sequence[str] | None = None,
    text_columns: Iterable[str] = (),
    hidden: Sequence[int] | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float = 0.01,
    validation_fraction: float = 0.2,
    seed: int = 0,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> TrainedTable:
    """Trains a Bayesian network on a table.

    The network has layers of `DenseVariational` units with ReLU after the
    preprocessing of the table. Its likelihood is a heteroscedastic Normal or a
    Categorical. Adam minimises the negative evidence lower bound of the training
    rows, with a learning rate that falls along a cosine to 0. The held-out rows
    decide nothing: they only give the figures.

    Args:
        table: Features and target, as from `tfbbb.data.read_table`.
        target: Name of the column to predict.
        task: `"regression"` or `"classification"`; see `tfbbb.data.Schema.infer`.
        features: Names of the columns to predict from, by default all others.
        text_columns: Names of features that are text although mostly numbers; see
            `tfbbb.data.Schema.infer`.
        hidden: Units of the hidden layers, by default one layer of 20 units, or of
            50 from 1000 training rows on.
        epochs: Passes over the training rows, by default what makes 6000 steps, and
            at least 10.
        batch_size: Rows per step, by default 32 to 256 by the number of rows.
        learning_rate: Learning rate at the start.
        validation_fraction: Fraction of the rows to hold out, between 0 and 1. Of
            classes the same fraction each.
        seed: Seed of the split, the start and the noise.
        callbacks: Keras callbacks, e.g. for progress.

    Returns:
        The trained model with its schema and its held-out figures.

    Raises:
        TableError: The table can't serve for this.
        TrainingDivergedError: The loss or a held-out figure is not finite; a lower
            `learning_rate` helps.
        ValueError: An argument is out of range.
    """
    text_columns = tuple(text_columns)
    whole = Schema.infer(
        table, target, task=task, features=features, text_columns=text_columns
    )
    classes = whole.targets_of(table) if whole.task == "classification" else None
    training_rows, held_out_rows = split(
        table.num_rows, validation_fraction, seed=seed, stratify=classes
    )
    schema = Schema.infer(
        table,
        target,
        task=task,
        features=features,
        text_columns=text_columns,
        training_rows=training_rows,
    )
    inputs, targets = _take(schema, table, training_rows)
    held_out = _take(schema, table, held_out_rows)

    if hidden is None:
        hidden = _hidden(len(targets))
    batch_size = batch_size or _batch_size(len(targets))
    steps_per_epoch = ceil(len(targets) / batch_size)
    epochs = epochs or max(_FEWEST_EPOCHS, ceil(_STEPS / steps_per_epoch))
    model = make_network(schema, hidden, seed=seed)
    schedule = keras.optimizers.schedules.CosineDecay(
        learning_rate, decay_steps=epochs * steps_per_epoch
    )
    model.compile(
        keras.optimizers.Adam(schedule),
        # A step of a small network takes less time than its dispatch from Python.
        steps_per_execution=min(steps_per_epoch, 50),
    )
    divergence = StopWhereDiverged()
    model.fit(
        shuffled_batches(inputs, targets, batch_size, seed=seed),
        epochs=epochs,
        steps_per_epoch=steps_per_epoch,
        dataset_size=len(targets),
        validation_data=held_out,
        validation_freq=ceil(epochs / _MOST_VALIDATIONS),
        shuffle=False,
        callbacks=[*callbacks, divergence],
        verbose=0,
    )
    if divergence.diverged:
        raise TrainingDivergedError(learning_rate)
    metrics = held_out_figures(model, *held_out)
    if not np.all(np.isfinite(list(metrics.values()))):
        raise TrainingDivergedError(learning_rate)
    return TrainedTable(
        model=model,
        schema=schema,
        training_rows=training_rows,
        held_out_rows=held_out_rows,
        metrics=metrics,
    )


def make_network(
    schema: Schema, hidden: Sequence[int], *, seed: int | None = None
) -> BayesianModel:
    """Makes the untrained network of `train_table`.

    Args:
        schema: What the network reads and predicts.
        hidden: Units of the hidden layers; none for a linear model.
        seed: Seed of the start and the noise.

    Example:

    >>> from tfbbb.data import Schema, samples
    >>> schema = Schema.infer(samples.diabetes(), "progression")
    >>> make_network(schema, [50]).output_shape
    (None, 2)
    """
    seeds = count(0 if seed is None else 1000 * seed)

    def dense(units: int, activation: str | None = None) -> DenseVariational:
        return DenseVariational(
            units,
            activation,
            kernel_initializer=keras.initializers.GlorotUniform(
                None if seed is None else next(seeds)
            ),
            seed=None if seed is None else next(seeds),
        )

    inputs, features = preprocessing(schema)
    for units in hidden:
        features = dense(units, "relu")(features)
    if schema.task == "classification":
        likelihood = Categorical()
        num_outputs = likelihood.num_outputs(len(schema.classes))
    else:
        likelihood = Normal(heteroscedastic=True)
        num_outputs = likelihood.num_outputs(1)
    return BayesianModel(inputs, dense(num_outputs)(features), likelihood=likelihood)


def held_out_figures(
    model: BayesianModel, inputs: Any, targets: np.ndarray
) -> dict[str, float]:
    """Computes the figures of `TrainedTable.metrics` on some rows.

    Args:
        model: A trained model of one target or of classes.
        inputs: Inputs of the model for `n` rows.
        targets: Targets `[n, 1]`, or class indices `[n]`.
    """
    prediction = model.predictive(inputs)
    figures = {"log_likelihood": float(np.mean(prediction.log_prob(targets)))}
    if model.likelihood.task == "classification":
        correct = prediction.probabilities.argmax(axis=-1) == targets
        return {"accuracy": float(np.mean(correct)), **figures}
    lower, upper = prediction.interval(0.9)
    errors = prediction.mean - targets
    covered = (lower <= targets) & (targets <= upper)
    return {
        "rmse": float(np.sqrt(np.mean(errors**2))),
        **figures,
        "coverage_90": float(np.mean(covered)),
    }


def _take(schema: Schema, table: pa.Table, rows: np.ndarray) -> tuple[Any, np.ndarray]:
    taken = table.take(rows)
    return schema.inputs_of(taken), schema.targets_of(taken)


def _hidden(num_rows: int) -> tuple[int, ...]:
    # Few rows can't tell many weights apart: their posteriors stay wide, and the noise
    # that is learned beside them takes their variance for its own.
    return (20,) if num_rows < 1000 else (50,)


def _batch_size(num_rows: int) -> int:
    """The power of two that makes 16 batches or more, from 32 to 256."""
    return int(np.clip(2 ** int(np.log2(num_rows / 16)), 32, 256))
