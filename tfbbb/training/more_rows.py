"""Goes on training the best network, after all were tried."""

from dataclasses import replace

import numpy as np

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.prediction.result import NotFiniteError
from tfbbb.training.candidates import fit_members
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.left_out_error import most_likely
from tfbbb.training.plan import kl_schedule_at
from tfbbb.training.run import Candidate, Run
from tfbbb.training.temperature_choice import choice_with_more_rows, choose


def train_after_trial(run: Run) -> tuple[Candidate, int]:
    """Goes on training the members of the best temperature of the best network.

    Returns the network and the number of steps: 0 if rows left out gain nothing.

    If several members left out each row, all of these but one now train on it, too. The
    one that is left predicts the row before and after, each time calibrated by one
    factor. If the rows are more likely afterwards, the new members are kept, and the
    gain of the mixture is multiplied by the ratio of the factors.
    """
    candidate, prepared, members = run.best, run.prepared, run.members
    choice, seed = candidate.choice, run.spec.training.seed
    assert choice is not None
    sees_more = sees_more_rows(members)
    going_on, said = replace(members, temperatures=(1.0,)), "go on training"
    if sees_more:
        groups = prepared.groups if prepared.last is None else prepared.last
        going_on = left_out_by_one(members, groups, seed)
        said += " with more rows"
    model = candidate.model.members.mixture(range(members.group_size))
    run.report.begin()
    try:
        outcome = fit_members(
            run,
            model,
            going_on,
            run.plan.after_trial,
            kl_schedule_at(choice.best.temperature),
            folder="after_trial/",
            name=candidate.name,
            stage=f"{going_on.num_members} members {said}",
            seed=seed + 1,
        )
        measured = going_on.measuring, *run.measured_rows()
        if sees_more:
            more = choice_with_more_rows(choice, members.measuring, model, *measured)
            if more is None:
                return candidate, 0
            more = replace(more, model=model)
            return replace(candidate, model=model, choice=more), outcome.step
        found = choose(model, *measured)
    except (TrainingDivergedError, NotFiniteError):
        return candidate, 0
    best = replace(found.best, temperature=choice.best.temperature)
    if most_likely([candidate.trial, best]) is candidate.trial:
        return candidate, 0
    trials = tuple(best if each is choice.best else each for each in choice.trials)
    found = replace(found, best=best, trials=trials)
    before = candidate.outcome
    outcome = replace(
        outcome,
        step=before.step + outcome.step,
        epoch=before.epoch + outcome.epoch,
        best_epoch=before.epoch + outcome.best_epoch,
    )
    trained = replace(candidate, model=model, choice=found, trial=best, outcome=outcome)
    return trained, outcome.step - before.step


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
