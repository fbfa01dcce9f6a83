"""Goes on training the best members, after all temperatures were tried."""

from dataclasses import replace

import numpy as np

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.prediction.result import NotFiniteError
from tfbbb.training.candidates import fit_members
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.plan import kl_schedule_at
from tfbbb.training.run import Candidate, Run
from tfbbb.training.temperature_choice import choice_after_trial, choice_with_more_rows


def train_after_trial(run: Run) -> tuple[Candidate, int]:
    """Goes on training the members of a network, where rows left out gain by it.

    Where each row was left out by several members, which chose the temperature and
    calibrate the answers, all of these but one train on it now, too. The one that is
    left predicts the row before and after, each time calibrated by one factor. If the
    rows are more likely afterwards, the new members are kept, and the gain of the
    mixture is multiplied by the ratio of the factors. Returns also the new steps.
    """
    candidate, prepared, members = run.best, run.prepared, run.members
    choice, seed = candidate.choice, run.spec.training.seed
    assert choice is not None
    on_more_rows = sees_more_rows(members)
    others = replace(members, temperatures=(1.0,))
    if on_more_rows:
        groups = prepared.groups if prepared.last is None else prepared.last
        others = left_out_by_one(members, groups, seed)
    model = candidate.model.members.mixture(range(members.group_size))
    temperature, measured = choice.best.temperature, run.measured_rows()
    run.report.begin()
    try:
        outcome = fit_members(
            run,
            model,
            others,
            run.plan.after_trial,
            kl_schedule_at(run.plan.temperature * temperature),
            folder="after_trial/",
            name=candidate.name,
            stage=f"the {members.group_size} best members go on training"
            + (" with more rows" if on_more_rows else ""),
            followed_by="calibration",
            seed=seed + 1,
        )
        if on_more_rows:
            better = choice_with_more_rows(
                choice, members.measuring, model, others.measuring, *measured
            )
        else:
            better = choice_after_trial(choice, others.measuring, model, *measured)
    except (TrainingDivergedError, NotFiniteError):
        better = None
    if better is None:
        return candidate, 0
    found = replace(
        candidate, model=model, choice=replace(better, model=model), trial=better.best
    )
    if on_more_rows:
        return found, outcome.step
    before = candidate.outcome
    outcome = replace(
        outcome,
        step=before.step + outcome.step,
        epoch=before.epoch + outcome.epoch,
        best_epoch=before.epoch + outcome.best_epoch,
    )
    return replace(found, outcome=outcome), outcome.step


def sees_more_rows(members: MemberRows) -> bool:
    """Whether several members left out each row, so that one alone may go on to."""
    return members.folds is not None and len(members.folds) > 1


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
