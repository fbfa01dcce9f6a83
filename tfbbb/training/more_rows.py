"""Goes on training the members of the best network, with more of the rows."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.bayes import kl_schedules
from tfbbb.model.optimizers import Adam
from tfbbb.tables.memory_rows import MemoryRows
from tfbbb.training.candidates import Candidate, measured_rows
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.devices import describe_devices
from tfbbb.training.loop import fit
from tfbbb.training.plan import TrainingPlan, kl_schedule_at
from tfbbb.training.preparation import Prepared
from tfbbb.training.progress import Progress
from tfbbb.training.spec.training import TrainingSpec
from tfbbb.training.temperature_choice import choice_with_more_rows


def train_on_more_rows(
    candidate: Candidate,
    plan: TrainingPlan,
    prepared: Prepared,
    members: MemberRows,
    training: TrainingSpec,
    *,
    max_seconds: float,
    reserve: Callable[[], float],
    directory: Path | None,
    checkpoint_seconds: float,
    fingerprint: str,
    xla: bool,
    report: Callable[[Progress], object],
    should_stop: Callable[[], bool],
) -> tuple[Candidate, int]:
    """Goes on training the members of a network, where rows left out gain by it.

    Each row was left out by several members, which chose the temperature and calibrate
    the answers. Now all of these but one train on it, too, at the same temperature.
    The one that is left predicts the row before and after, each time calibrated by one
    factor. If the rows are more likely afterwards, the new members are kept, and the
    gain of the mixture is multiplied by the ratio of the factors.
    """
    choice, rows = candidate.choice, prepared.rows
    assert choice is not None
    assert isinstance(rows, MemoryRows)
    plan = plan.on_more_rows
    groups = prepared.groups if prepared.last is None else prepared.last
    left_out = _left_out_by_one(members, groups, training.seed)
    schedule = kl_schedule_at(choice.best.temperature)
    rate = plan.keras_learning_rate
    with candidate.model.distribute_strategy.scope():
        model = candidate.model.members.mixture(range(members.group_size))
        model.compile(
            Adam(rate),
            kl_schedule=kl_schedules.make(schedule.name, **schedule.options()),
        )
    stage = f"{members.group_size} members go on training with more rows"
    try:
        outcome = fit(
            model,
            rows.weighted(left_out.weights),
            epochs=plan.epochs,
            batch_size=plan.batch_size,
            seed=training.seed + 1,
            member_rows=left_out,
            max_seconds=max_seconds,
            reserve=reserve,
            decay=None if plan.learning_rate.decay == "constant" else rate,
            checkpoint_directory=directory,
            checkpoint_seconds=checkpoint_seconds,
            fingerprint=f"{fingerprint} more rows",
            xla=xla,
            stage="; ".join(filter(None, [stage, describe_devices(training.devices)])),
            report=report,
            should_stop=should_stop,
        )
    except TrainingDivergedError:
        return candidate, 0
    better = choice_with_more_rows(
        choice,
        members.measuring,
        model,
        left_out.measuring,
        *measured_rows(prepared, members),
    )
    if better is None:
        return candidate, 0
    better = replace(better, model=model)
    return replace(candidate, model=model, choice=better), outcome.step


def _left_out_by_one(
    members: MemberRows, groups: np.ndarray | None, seed: int
) -> MemberRows:
    """Returns members of one temperature, of which one leaves out each row.

    It is one of those that left out the row before, drawn at random, and the same for
    all rows of a group.
    """
    assert members.folds is not None
    repeats, num_rows = members.folds.shape
    if groups is None:
        groups = np.arange(num_rows)
    names, group = np.unique(groups, return_inverse=True)
    generator = np.random.default_rng([seed, num_rows])
    repeat = generator.integers(repeats, size=len(names))[group]
    fold = members.folds[repeat, np.arange(num_rows)]
    places = np.where(fold < 0, -1, repeat * members.num_folds + fold).astype(np.int32)
    return replace(members, temperatures=(1.0,), folds=places[np.newaxis])
