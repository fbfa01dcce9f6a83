"""Trains the model of a spec on a table, and measures it on held-out rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.base.types import ArrayLike, TableLike
from tfbbb.judging.evaluation import PredictedRows
from tfbbb.judging.evaluation.judgement import (
    LEARNED_NOTHING,
    STANDARD_ERRORS,
    beats_constant,
)
from tfbbb.judging.evaluation.predicted_rows import tells_rows_apart
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.training_rows import warn_if_far_from_rows
from tfbbb.tables import TableError
from tfbbb.tables.given_table import as_source
from tfbbb.tables.scan import TableScan
from tfbbb.training.candidates import Candidate, measured_rows, train_candidates
from tfbbb.training.continuation import check_continuation
from tfbbb.training.convergence import describe_convergence
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.devices import training_strategy
from tfbbb.training.epistemic_reference import epistemic_reference
from tfbbb.training.held_out import drift_reference
from tfbbb.training.judging import judge_training
from tfbbb.training.left_out_error import most_likely
from tfbbb.training.likelihood_turns import ProgressOfTurns, train_in_turn
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
from tfbbb.training.spec.families import LikelihoodPart
from tfbbb.training.target_likelihood import (
    MOST_ROWS,
    LikelihoodChoice,
    choose_likelihood,
)
from tfbbb.training.time_limit import TimeLimit
from tfbbb.training.trained_table import TrainedTable
from tfbbb.training.version_report import VersionReport
from tfbbb.training.xla import XLA


def train_table(
    table: TableLike,
    spec: JobSpec | Mapping[str, Any],
    *,
    row_weights: ArrayLike = None,
    start_from: Path | ParentVersion | None = None,
    directory: Path | None = None,
    checkpoint_seconds: float = 30.0,
    ray_address: str | None = None,
    xla: XLA = "auto",
    validate_left_out: bool = False,
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
    `validation` by `fraction`, `column` or `time`, with `early_stopping` or with fewer
    than three members. A numeric target without a `likelihood` gets the one that rows
    left out by a random forest prefer, by default Student t noise. One that diverges,
    or predicts rows left out far worse than a constant, gives way to another. From 5000
    rows on it trains once for each way to encode numbers, and for more inputs than a
    tenth of the rows also a linear network with a horseshoe prior, and keeps the best
    one.
    With `partitions` it trains one posterior of one network at temperature 1 by
    partitioned variational inference, beside held-out rows.

    Args:
        table: Features and target: a table of pyarrow, pandas or polars, a mapping from
            column names to values, a list of rows as mappings, or a file as a
            `tfbbb.tables.TableScan`.
        spec: A `JobSpec`, or its fields as a mapping.
        row_weights: The weight of each row, [rows], positive; None for 1. A row of
            weight 2 counts as two rows: its log likelihood is multiplied by 2, N is the
            sum of the weights, and the metrics are weighted, as are those by which
            temperatures and networks are chosen. Scaling, categories, epochs and the
            recalibration come from the rows without weights.
        start_from: The parent version, or its directory; its posterior is the prior:
            see `tfbbb.training.parent_version.ParentVersion`.
        directory: Directory for the rows of a file, so that memory need not hold them,
            and for checkpoints, from which an interrupted training of the same table
            and spec resumes. None for neither.
        checkpoint_seconds: Time between checkpoints.
        ray_address: The Ray cluster on which the partitions of a training with
            `partitions` live, as for `tfbbb.lab.distributed.PartitionedVI`; None for
            this process.
        xla: Whether XLA compiles the steps of a training without `partitions`, as for
            `tfbbb.training.loop.fit`: by default where it is faster on a GPU.
        validate_left_out: Whether the progress has the `val_nll` of rows that members
            leave out, as it has that of held-out rows: by one draw of each member, a
            mean over all temperatures. It draws from the same noise as the training,
            which so ends at other weights.
        report: Called with the progress.
        should_stop: Called several times a second, or after each round of partitions;
            returns whether to stop.

    Returns:
        The trained model with its schema and its held-out metrics.

    Raises:
        TypeError: `spec` is neither a `JobSpec` nor a mapping.
        ValueError: A row has no weight, or one that is not positive and finite, or
            there are weights and partitions.
        TableError: The table cannot be used for training.
        SpecError: The spec does not fit the table or the parent version.
        CheckpointError: The directory has a checkpoint of another training.
        TrainingDivergedError: The loss or a held-out metric is not finite; lower the
            learning rate.
        Interrupted: `should_stop` returned true.

    Example:

    >>> from tfbbb.tables import samples
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
    limit = TimeLimit(spec.training.max_seconds)
    choice = None
    source: Any = table if isinstance(table, TableScan) else as_source(table)
    weights = None if row_weights is None else _checked_weights(row_weights)
    training, parent = spec.training, None
    if weights is not None and training.partitions is not None:
        raise ValueError(
            "Rows in partitions have no weights: leave `row_weights` or `partitions` "
            f"out. Received: partitions={training.partitions}"
        )
    strategy = training_strategy(training.devices)
    if start_from is None:
        prepared = prepare(source, spec, directory=directory, row_weights=weights)
        choice = _choose_likelihood(spec, prepared)
        plan = _plan(spec, prepared, choice)
        with strategy.scope():
            models = _make_networks(plan, prepared, training.seed)
    else:
        parent = (
            start_from
            if isinstance(start_from, ParentVersion)
            else ParentVersion.read(start_from)
        )
        check_continuation(spec, parent.record, source.schema.names)
        spec = _continued(spec, parent.record.spec.model)
        prepared = prepare(source, spec, parent.record.schema, directory, weights)
        plan = _plan(spec, prepared)
        with strategy.scope():
            models = [parent.network(training.seed)]
    _adapt(models, prepared)
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
        groups=prepared.groups,
        row_weights=prepared.weights,
    )
    partitions, outcomes = None, {}
    progress = ProgressOfTurns(report)

    def train_with(
        number: int, part: LikelihoodPart | None, limit: TimeLimit
    ) -> list[Candidate]:
        networks, of_this, checkpoints = models, plan, directory
        if number:
            assert choice is not None
            assert part is not None
            of_this = _plan(spec, prepared, replace(choice, likelihood=part))
            with strategy.scope():
                networks = _make_networks(of_this, prepared, training.seed)
            _adapt(networks, prepared)
            if directory is not None:
                checkpoints = directory / f"likelihood_{number + 1}"
        progress.begin(number, part)
        return train_candidates(
            networks,
            of_this,
            prepared,
            members,
            training,
            limit,
            directory=checkpoints,
            checkpoint_seconds=checkpoint_seconds,
            fingerprint=f"{spec.model_dump_json()} {_name(start_from)} {number}",
            xla=xla,
            validate_left_out=validate_left_out,
            report=progress,
            should_stop=should_stop,
        )

    if training.partitions is None:
        turns = train_in_turn(choice, train_with, limit)
        candidates, outcomes = turns.candidates, turns.outcomes
    else:
        candidate, partitions = _training_in_partitions()(
            models[0],
            plan,
            prepared,
            training,
            part_rows=source.part_rows if isinstance(source, TableScan) else (),
            max_seconds=limit.of_steps(0, networks=1, taken=0.0),
            ray_address=ray_address,
            report=report,
            should_stop=should_stop,
        )
        candidates = [candidate]
    best = most_likely(candidates)
    model, chosen, schedule = best.model, best.choice, plan.schedule
    if len(plan.temperatures) > 1 and chosen is not None:
        schedule = kl_schedule_at(chosen.best.temperature)
    inputs, targets, measured_weights = measured_rows(prepared, members)
    calibrated = calibrate(
        model,
        spec.recalibration,
        prepared.schema,
        inputs,
        targets,
        None if members.folds is None else chosen,
        measured_weights,
    )
    if not np.all(np.isfinite(list(calibrated.metrics.values()))):
        raise TrainingDivergedError(plan.learning_rate.initial or 0.0)
    places = prepared.held_out_rows if members.folds is None else prepared.training_rows
    scored = PredictedRows.score(
        calibrated.prediction, targets, calibrated.metrics.get("coverage_90")
    )
    apart = tells_rows_apart(calibrated.prediction, targets, scored.log_prob)
    scored = replace(scored, tells_rows_apart=apart)
    judgement, baselines = judge_training(
        prepared.schema,
        prepared.rows,
        members.folds,
        inputs,
        targets,
        scored,
        discrete=model.likelihood.discrete,
        places=places,
        parent=None
        if parent is None
        else PredictedRows.score(
            parent.model(training.seed).predictive(inputs), targets
        ),
    )
    convergence = describe_convergence(
        best.outcome.losses,
        np.zeros((0, 2)) if chosen is None else chosen.gaps,
        None
        if prepared.schema.task == "classification"
        else calibrated.uncalibrated.aleatoric,
        targets,
        getattr(model.likelihood, "resolution", None),
    )
    judgement["convergence"] = convergence
    network = best.network.model_copy(update={"members": plan.group_size})
    update: dict[str, Any] = {"learning_rate": plan.learning_rate}
    if partitions is None:
        update["kl_schedule"] = schedule
    recipe = {
        **describe_recipe(
            plan, prepared, members, candidates, best, len(targets), outcomes
        ),
        "rows_without_target": prepared.rows_without_target,
        **({} if partitions is None else {"partitions": partitions}),
        **({} if training.max_seconds is None else {"seconds": limit.elapsed}),
    }
    ended = []
    if recipe["out_of_time"]:
        steps = "1 step" if recipe["steps"] == 1 else f"{recipe['steps']} steps"
        ended = [
            f"`max_seconds` = {training.max_seconds:g} ended the training after "
            f"{steps}: with more time the model may be better."
        ]
    # After a few steps, better probabilities may come from the likelihood alone, and a
    # little less error from chance.
    compared = judgement["comparisons"]
    judgement["learned"] &= not ended or beats_constant(compared, STANDARD_ERRORS)
    judgement["becomes_latest"] = judgement["learned"] or spec.latest == "always"
    useless = [] if judgement["learned"] else [LEARNED_NOTHING]
    for kind in ("sentences", "warnings"):
        judgement[kind] += [*convergence["warnings"], *useless, *ended]
    return TrainedTable(
        model=model,
        schema=prepared.schema,
        spec=spec.model_copy(
            update={"model": network, "training": training.model_copy(update=update)}
        ),
        num_training_rows=prepared.rows.num_rows,
        held_out_rows=prepared.held_out_rows,
        metrics=calibrated.metrics,
        log_likelihoods=scored.log_prob,
        recalibration_choice=calibrated.choice,
        recipe=recipe,
        judgement=judgement,
        baselines=baselines,
        epistemic_reference=epistemic_reference(
            model, members, inputs, len(targets), spec.abstain_above
        ),
        drift_reference=None
        if members.folds is not None
        else drift_reference(calibrated.prediction, targets),
        report=VersionReport.measure(
            model,
            prepared.schema,
            baselines,
            calibrated,
            recipe,
            judgement,
            inputs,
            targets,
            places,
            seconds=limit.of_report(),
        ),
    )


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


def _name(parent: Path | ParentVersion | None) -> str:
    return parent.sha256 if isinstance(parent, ParentVersion) else str(parent)


def _plan(
    spec: JobSpec, prepared: Prepared, likelihood: LikelihoodChoice | None = None
) -> TrainingPlan:
    targets = prepared.rows.targets()
    repeats = 0
    if not len(prepared.held_out_rows):
        repeats = cross_fitting_repeats(spec, len(targets))
    return TrainingPlan.from_spec(spec, prepared.schema, targets, repeats, likelihood)


def _choose_likelihood(spec: JobSpec, prepared: Prepared) -> LikelihoodChoice | None:
    """Returns the likelihood of a target of numbers, unless the spec names one."""
    if spec.model.likelihood is not None or prepared.schema.task != "regression":
        return None
    rows, seed = prepared.rows, spec.training.seed
    batches = rows.batches(MOST_ROWS, seed=seed).take(1)
    inputs, targets, *_ = batches.as_numpy_iterator().next()
    every = np.concatenate([rows.targets(), prepared.held_out[1]])
    return choose_likelihood(inputs, targets, others=every, seed=seed)


def _continued(spec: JobSpec, network: ModelSpec) -> JobSpec:
    """Returns a spec with the parent's network, at temperature 1."""
    schedule = spec.training.kl_schedule or kl_schedule_at(1.0)
    training = spec.training.model_copy(update={"kl_schedule": schedule})
    return spec.model_copy(update={"model": network, "training": training})


def _make_networks(
    plan: TrainingPlan, prepared: Prepared, seed: int
) -> list[BayesianModel]:
    """Makes the networks of a plan, with the members of all temperatures."""
    return [
        make_network(
            prepared.schema,
            network.model_copy(update={"members": plan.num_members}),
            seed=seed,
        )
        for network in plan.networks.values()
    ]


def _adapt(models: Sequence[BayesianModel], prepared: Prepared) -> None:
    """Adapts the likelihoods to the training targets."""
    try:
        for model in models:
            model.likelihood.adapt(prepared.rows.targets())
    except ValueError as error:
        name = prepared.schema.target.name
        raise TableError(f"The target {name!r} cannot be learned: {error}") from None


def _training_in_partitions() -> Callable[..., tuple[Candidate, dict[str, Any]]]:
    """Returns the training in partitions, which is experimental, by its name."""
    module = import_module("tfbbb.lab.distributed.table_training")
    step: Callable[..., tuple[Candidate, dict[str, Any]]] = module.train_in_partitions
    return step
