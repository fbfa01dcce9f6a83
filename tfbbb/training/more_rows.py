"""Goes on training the members of the best network, with more of the rows."""

from dataclasses import replace

import numpy as np

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.training.candidates import fit_members
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.plan import kl_schedule_at
from tfbbb.training.run import Candidate, Run
from tfbbb.training.temperature_choice import choice_with_more_rows


def train_on_more_rows(run: Run) -> tuple[Candidate, int]:
    """Goes on training the members of a network, where rows left out gain by it.

    Each row was left out by several members, which chose the temperature and calibrate
    the answers. Now all of these but one train on it, too, at the same temperature.
    The one that is left predicts the row before and after, each time calibrated by one
    factor. If the rows are more likely afterwards, the new members are kept, and the
    gain of the mixture is multiplied by the ratio of the factors.
    """
    candidate, prepared, members = run.best, run.prepared, run.members
    choice, rows, seed = candidate.choice, prepared.rows, run.spec.training.seed
    assert choice is not None
    groups = prepared.groups if prepared.last is None else prepared.last
    left_out = left_out_by_one(members, groups, seed)
    assert left_out.weights is not None
    model = candidate.model.members.mixture(range(members.group_size))
    run.report.begin()
    try:
        outcome = fit_members(
            run,
            model,
            rows.weighted(left_out.weights),
            left_out,
            run.plan.on_more_rows,
            kl_schedule_at(choice.best.temperature),
            folder="more_rows/",
            name=candidate.name,
            stage=f"{members.group_size} members go on training with more rows",
            max_seconds=run.limit.rest().seconds,
            followed_by="calibration",
            seed=seed + 1,
        )
    except TrainingDivergedError:
        return candidate, 0
    better = choice_with_more_rows(
        choice, members.measuring, model, left_out.measuring, *run.measured_rows()
    )
    if better is None:
        return candidate, 0
    better = replace(better, model=model)
    return replace(candidate, model=model, choice=better), outcome.step


def left_out_by_one(
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
