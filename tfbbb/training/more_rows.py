"""Goes on training the best network, after all were tried."""

from dataclasses import replace

import numpy as np

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction.result import NotFiniteError
from tfbbb.training.candidates import fit_members
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.left_out_error import most_likely
from tfbbb.training.loop import Outcome
from tfbbb.training.plan import kl_schedule_at
from tfbbb.training.run import Candidate, Run
from tfbbb.training.spec.families import KLSchedulePart
from tfbbb.training.temperature_choice import choice_with_more_rows, choose


def train_after_trial(run: Run) -> tuple[Candidate, int]:
    """Goes on training the best network, and returns it with the number of steps.

    Where several members left out each row, those of the best temperature go on with
    more rows: see `train_on_more_rows`. Otherwise all of its members take the steps
    that are left, and the temperature is chosen anew.
    """
    if sees_more_rows(run.members):
        return train_on_more_rows(run)
    candidate, members, model = run.best, run.members, run.best.every
    try:
        outcome = _fit(run, model, members, run.plan.schedule, "go on training")
        choice = choose(model, members.measuring, *run.measured_rows())
    except (TrainingDivergedError, NotFiniteError):
        return candidate, 0
    before = candidate.outcome
    trained = replace(
        candidate,
        model=choice.model,
        choice=choice,
        trial=choice.best,
        outcome=replace(
            outcome,
            step=before.step + outcome.step,
            epoch=before.epoch + outcome.epoch,
            best_epoch=before.epoch + outcome.best_epoch,
        ),
    )
    best = most_likely([candidate.trial, trained.trial])
    return (candidate if best is candidate.trial else trained), outcome.step


def train_on_more_rows(run: Run) -> tuple[Candidate, int]:
    """Goes on training the members of a network, where rows left out gain by it.

    Each row was left out by several members, which chose the temperature and calibrate
    the answers. Now all of these but one train on it, too, at the same temperature.
    The one that is left predicts the row before and after, each time calibrated by one
    factor. If the rows are more likely afterwards, the new members are kept, and the
    gain of the mixture is multiplied by the ratio of the factors.
    """
    candidate, prepared, members = run.best, run.prepared, run.members
    choice, seed = candidate.choice, run.spec.training.seed
    assert choice is not None
    groups = prepared.groups if prepared.last is None else prepared.last
    left_out = left_out_by_one(members, groups, seed)
    model = candidate.model.members.mixture(range(members.group_size))
    schedule = kl_schedule_at(choice.best.temperature)
    try:
        said = "go on training with more rows"
        outcome = _fit(run, model, left_out, schedule, said)
    except TrainingDivergedError:
        return candidate, 0
    better = choice_with_more_rows(
        choice, members.measuring, model, left_out.measuring, *run.measured_rows()
    )
    if better is None:
        return candidate, 0
    better = replace(better, model=model)
    return replace(candidate, model=model, choice=better), outcome.step


def _fit(
    run: Run,
    model: BayesianModel,
    members: MemberRows,
    schedule: KLSchedulePart,
    said: str,
) -> Outcome:
    run.report.begin()
    return fit_members(
        run,
        model,
        members,
        run.plan.after_trial,
        schedule,
        folder="after_trial/",
        name=run.best.name,
        stage=f"{members.num_members} members {said}",
        seed=run.spec.training.seed + 1,
    )


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
