"""Trains the model of a spec on a table, and measures it on held-out rows."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tfbbb.base.garbage_collection import rare_garbage_collection
from tfbbb.base.types import ArrayLike, TableLike
from tfbbb.model.training_rows import warn_if_far_from_rows
from tfbbb.tables.given_table import as_source
from tfbbb.tables.scan import TableScan
from tfbbb.training.job_clock import JobClock, Progress
from tfbbb.training.parent_version import ParentVersion
from tfbbb.training.pipeline import STEPS, result
from tfbbb.training.run import ProgressOfAll, Run
from tfbbb.training.serving_version import ServingVersion
from tfbbb.training.spec import JobSpec
from tfbbb.training.trained_table import TrainedTable


def train_table(
    table: TableLike,
    spec: JobSpec | Mapping[str, Any],
    *,
    row_weights: ArrayLike = None,
    start_from: Path | ParentVersion | None = None,
    serving: ServingVersion | None = None,
    directory: Path | None = None,
    checkpoint_seconds: float = 30.0,
    xla: bool = False,
    report: Callable[[Progress], object] = lambda progress: None,
    should_stop: Callable[[], bool] = lambda: False,
    clock: JobClock | None = None,
) -> TrainedTable:
    """Trains the Bayesian network of a spec on a table.

    Adam minimises the negative evidence lower bound of the training rows. By default
    it trains members at several temperatures in one graph, each of which leaves out a
    fold of the rows, keeps the temperature whose members predict the rows they left out
    best, and calibrates them by these rows. So all rows train, and each row has a
    prediction by members that never saw it, which gives the metrics. Tables of 5000
    rows and more have held-out rows instead, as do specs with a `validation` by
    `fraction`, `column` or `time`, with `early_stopping` or with fewer
    than three members. A numeric target without a `likelihood` gets the one that rows
    left out by a random forest prefer, by default Student t noise. One that diverges,
    or predicts rows left out far worse than a constant, gives way to another. From 5000
    rows on it trains once for each way to encode numbers; where a linear model predicts
    rows left out about as well, it trains a linear network, too. It keeps the best one.

    Args:
        table: Features and target: a table of pyarrow, pandas or polars, a mapping from
            column names to values, a list of rows as mappings, or a file as a
            `tfbbb.tables.TableScan`.
        spec: A `JobSpec`, or its fields as a mapping.
        row_weights: The weight of each row, [rows], positive; None for 1. A row of
            weight 2 counts as two rows: its log likelihood is multiplied by 2, N is the
            sum of the weights, and metrics, recalibration and judgement count rows by
            their weights, as do the choices of temperature and network. Scaling,
            categories and epochs come from the rows without weights.
        start_from: The parent version, or its directory; its posterior is the prior:
            see `tfbbb.training.parent_version.ParentVersion`.
        serving: The version that serves. The new one does not become `latest` if it is
            clearly worse.
        directory: Directory for the rows of a file, so that memory need not hold them,
            and for checkpoints, from which an interrupted training of the same table
            and spec resumes; one of another training is ignored. None for neither.
        checkpoint_seconds: Time between checkpoints.
        xla: Whether XLA compiles the steps. It draws other random numbers, so the
            weights differ; on CPUs it is slower.
        report: Called with the progress.
        should_stop: Called several times a second; returns whether to stop.
        clock: Tells at any time, from any thread, what the training is at and how long
            it takes yet. The time that has passed on it counts for `max_seconds`. None
            for one that begins now.

    Returns:
        The trained model with its schema and its held-out metrics.

    Raises:
        TypeError: `spec` is neither a `JobSpec` nor a mapping.
        ValueError: A row has no weight, or one that is not positive and finite.
        TableError: The table cannot be used for training.
        SpecError: The spec does not fit the table or the parent version.
        TrainingDivergedError: The loss or a held-out metric is not finite; lower the
            learning rate.
        Interrupted: `should_stop` returned true.

    Example:

    >>> from tfbbb.tables import samples
    >>> from tfbbb.training import train_table
    >>> spec = {
    ...     "target": "progression",
    ...     "model": {"members": 2, "likelihood": "normal"},
    ...     "training": {"epochs": 1, "kl_schedule": "constant"},
    ... }
    >>> trained = train_table(samples.diabetes(), spec)
    >>> trained.num_training_rows, len(trained.held_out_rows)
    (398, 44)
    """
    if isinstance(spec, Mapping):
        spec = JobSpec.model_validate(spec)
    if not isinstance(spec, JobSpec):
        raise TypeError(
            "`spec` must be a `tfbbb.training.JobSpec` or a mapping of its fields, "
            f"such as {{'target': 'price'}}. Received: spec={spec!r}"
        )
    clock = clock or JobClock()
    if spec.training.max_seconds is not None:
        clock.limit = spec.training.max_seconds
    weights = None if row_weights is None else _checked_weights(row_weights)
    parent = start_from
    if not (parent is None or isinstance(parent, ParentVersion)):
        parent = ParentVersion.read(parent)

    def reported(progress: Progress) -> None:
        clock.see(progress)
        report(progress)

    run = Run(
        source=table if isinstance(table, TableScan) else as_source(table),
        spec=spec,
        weights=weights,
        parent=parent,
        serving=serving,
        directory=directory,
        checkpoint_seconds=checkpoint_seconds,
        xla=xla,
        clock=clock,
        report=ProgressOfAll(reported),
        should_stop=should_stop,
    )
    with rare_garbage_collection():
        for step in STEPS:
            run = step(run)
        return result(run)


def _checked_weights(given: ArrayLike) -> np.ndarray | None:
    """Returns weights as float32 [rows]; None if all are 1."""
    weights = np.asarray(given, np.float32)
    wrong = ~(np.isfinite(weights) & (weights > 0))
    if weights.ndim != 1 or wrong.any():
        received = f"an array of shape {weights.shape}"
        if weights.ndim == 1:
            row = int(np.argmax(wrong))
            received = f"{weights[row]} in row {row + 1}"
        raise ValueError(
            "`row_weights` must hold one positive, finite number per row; drop the "
            f"rows that should not count. Received: {received}"
        )
    warn_if_far_from_rows(weights, "", stacklevel=3)
    return None if np.all(weights == 1) else weights
