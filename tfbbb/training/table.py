"""Trains the model of a spec on a table, and measures it on held-out rows."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tfbbb.data import TableError
from tfbbb.data.given_table import as_source
from tfbbb.data.scan import TableScan
from tfbbb.diverged_training import TrainingDivergedError
from tfbbb.likelihoods import Likelihood
from tfbbb.training.candidates import measured_rows, train_candidates
from tfbbb.training.continuation import check_continuation
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.network import make_network
from tfbbb.training.parent_version import ParentVersion
from tfbbb.training.plan import (
    TrainingPlan,
    cross_fitting_repeats,
    kl_schedule_at,
)
from tfbbb.training.preparation import Prepared, prepare
from tfbbb.training.progress import Progress
from tfbbb.training.recalibration import calibrate, make_recalibration
from tfbbb.training.recipe import describe_recipe
from tfbbb.training.spec import JobSpec, ModelSpec
from tfbbb.training.trained_table import TrainedTable
from tfbbb.types import TableLike


def train_table(
    table: TableLike,
    spec: JobSpec | Mapping[str, Any],
    *,
    start_from: Path | None = None,
    directory: Path | None = None,
    checkpoint_seconds: float = 30.0,
    report: Callable[[Progress], object] = lambda progress: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> TrainedTable:
    """Trains the Bayesian network of a spec on a table.

    Adam minimises the negative evidence lower bound of the training rows. By default
    it trains members at several temperatures in one graph, each of which leaves out a
    fold of the rows, keeps the temperature whose members predict the rows they left out
    best, and calibrates them by these rows. So all rows train, and each row has a
    prediction by members that never saw it, which gives the metrics. Tables of fewer
    than 40 rows, or 5000 and more, have held-out rows instead, as do specs with a
    `validation`, with `early_stopping` or with fewer than three members. From 5000 rows
    on it trains once for each way to encode numbers, and for more inputs than a tenth
    of the rows also a linear network with a horseshoe prior, and keeps the best one.

    Args:
        table: Features and target: a table of pyarrow, pandas or polars, a mapping from
            column names to values, a list of rows as mappings, or a file as a
            `tfbbb.data.TableScan`.
        spec: A `JobSpec`, or its fields as a mapping.
        start_from: Directory of the parent version, whose posterior is the prior: see
            `tfbbb.training.parent_version.ParentVersion`.
        directory: Directory for the rows of a file, so that memory need not hold them,
            and for checkpoints, from which an interrupted training of the same table
            and spec resumes. None for neither.
        checkpoint_seconds: Time between checkpoints.
        report: Called with the progress.
        should_stop: Called several times a second; returns whether to stop.

    Returns:
        The trained model with its schema and its held-out metrics.

    Raises:
        TypeError: `spec` is neither a `JobSpec` nor a mapping.
        TableError: The table cannot be used for training.
        SpecError: The spec does not fit the table or the parent version.
        CheckpointError: The directory has a checkpoint of another training.
        TrainingDivergedError: The loss or a held-out metric is not finite; lower the
            learning rate.
        Interrupted: `should_stop` returned true.

    Example:

    >>> from tfbbb.data import samples
    >>> from tfbbb.training import train_table
    >>> spec = {"target": "progression", "training": {"epochs": 1}}
    >>> trained = train_table(samples.diabetes(), spec)
    >>> trained.num_training_rows, len(trained.held_out_rows)
    (442, 0)
    """
    if isinstance(spec, Mapping):
        spec = JobSpec.model_validate(spec)
    if not isinstance(spec, JobSpec):
        raise TypeError(
            "`spec` must be a `tfbbb.training.JobSpec` or a mapping of its fields, "
            f"such as {{'target': 'price'}}. Received: spec={spec!r}"
        )
    source: Any = table if isinstance(table, TableScan) else as_source(table)
    training = spec.training
    if start_from is None:
        prepared = prepare(source, spec, directory=directory)
        plan = _plan(spec, prepared)
        models = [
            make_network(
                prepared.schema,
                network.model_copy(update={"members": plan.num_members}),
                seed=training.seed,
            )
            for network in plan.networks.values()
        ]
    else:
        parent = ParentVersion.read(start_from)
        check_continuation(spec, parent.record, source.schema.names)
        spec = _continued(spec, parent.record.spec.model)
        prepared = prepare(source, spec, parent.record.schema, directory)
        plan = _plan(spec, prepared)
        models = [parent.network(training.seed)]
    for model in models:
        _adapt(model.likelihood, prepared)
    make_recalibration(spec.recalibration, models[0].likelihood, prepared.schema)
    members = MemberRows.draw(
        prepared.rows.num_rows,
        plan.temperatures,
        plan.group_size,
        plan.repeats,
        seed=training.seed,
        classes=prepared.rows.targets()
        if prepared.schema.task == "classification"
        else None,
    )
    candidates = train_candidates(
        models,
        plan,
        prepared,
        members,
        training,
        directory=directory,
        checkpoint_seconds=checkpoint_seconds,
        fingerprint=f"{spec.model_dump_json()} {start_from}",
        report=report,
        should_stop=should_stop,
    )
    best = max(candidates, key=lambda candidate: candidate.log_likelihood)
    model, choice, schedule = best.model, best.choice, plan.schedule
    if len(plan.temperatures) > 1 and choice is not None:
        schedule = kl_schedule_at(choice.best.temperature)
    inputs, targets = measured_rows(prepared, members)
    calibrated = calibrate(
        model,
        spec.recalibration,
        prepared.schema,
        inputs,
        targets,
        None if members.folds is None else choice,
    )
    if not np.all(np.isfinite(list(calibrated.metrics.values()))):
        raise TrainingDivergedError(plan.learning_rate.initial or 0.0)
    network = best.network.model_copy(update={"members": plan.group_size})
    chosen = {"kl_schedule": schedule, "learning_rate": plan.learning_rate}
    return TrainedTable(
        model=model,
        schema=prepared.schema,
        spec=spec.model_copy(
            update={"model": network, "training": training.model_copy(update=chosen)}
        ),
        num_training_rows=prepared.rows.num_rows,
        held_out_rows=prepared.held_out_rows,
        metrics=calibrated.metrics,
        recalibration_choice=calibrated.choice,
        recipe=describe_recipe(plan, prepared, members, candidates, best, len(targets)),
    )


def _plan(spec: JobSpec, prepared: Prepared) -> TrainingPlan:
    targets = prepared.rows.targets()
    repeats = 0
    if not len(prepared.held_out_rows):
        repeats = cross_fitting_repeats(spec, len(targets))
    return TrainingPlan.from_spec(spec, prepared.schema, targets, repeats)


def _continued(spec: JobSpec, network: ModelSpec) -> JobSpec:
    """Returns a spec with the parent's network, at temperature 1."""
    schedule = spec.training.kl_schedule or kl_schedule_at(1.0)
    training = spec.training.model_copy(update={"kl_schedule": schedule})
    return spec.model_copy(update={"model": network, "training": training})


def _adapt(likelihood: Likelihood, prepared: Prepared) -> None:
    """Adapts the likelihood to the training targets, unless it already is adapted."""
    try:
        likelihood.adapt(prepared.rows.targets())
    except ValueError as error:
        name = prepared.schema.target.name
        raise TableError(f"The target {name!r} cannot be learned: {error}") from None
