"""Trains the networks that are tried for a table, and goes on with the best one."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.optimizers import Adam
from tfbbb.prediction.result import NotFiniteError
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.job_clock import JobClock
from tfbbb.training.left_out_error import WORST_ERROR, Trial, most_likely
from tfbbb.training.loop import Outcome, fit
from tfbbb.training.parent_version import can_untemper, untemper
from tfbbb.training.plan import TrainingPlan, kl_schedule_at
from tfbbb.training.run import Candidate, Run
from tfbbb.training.spec.families import KLSchedulePart, LikelihoodPart, likelihoods
from tfbbb.training.target_likelihood import LikelihoodChoice
from tfbbb.training.temperature_choice import (
    TemperatureChoice,
    choice_with_more_rows,
    choose,
)

# Of the time of the steps, where members go on after the trial.
_TIME_OF_TRIAL = 0.75
# Of a network with one temperature that was compared with no other.
_NOT_COMPARED = Trial(temperature=1.0, log_likelihood=0.0, factor=1.0)
_MIXTURE = likelihoods.make("normal_mixture", components=2)


def train_in_turn(
    choice: LikelihoodChoice | None,
    train: Callable[[int, LikelihoodPart | None], list[Candidate]],
    clock: JobClock,
) -> tuple[list[Candidate], dict[str, str]]:
    """Trains with the likelihood that was chosen, and with others while it is no good.

    One that diverges gives way to the next by likelihood. One whose networks predict
    rows left out far worse than a constant gives way to the default, whose mean is
    linear in the output of the network, if half of the time is left. If the sum of the
    predictions is off then, as where most amounts are 0, a mixture of two normals is
    tried: one of them can be the zeros.
    """
    parts: list[LikelihoodPart | None] = [None]
    default = None
    if choice is not None:
        by_likelihood = sorted(choice.trials, key=lambda trial: -trial.log_likelihood)
        others = [trial.likelihood for trial in by_likelihood]
        tried = (choice.likelihood, _MIXTURE)
        parts = [choice.likelihood, *(x for x in others if x not in tried)]
        default = choice.trials[0].likelihood if choice.trials else choice.likelihood
        unbounded = default.support is not None and default.support.unbounded
        if unbounded and choice.likelihood != _MIXTURE:
            parts.append(_MIXTURE)
    candidates: list[Candidate] = []
    outcomes: dict[str, str] = {}
    error: TrainingDivergedError | None = None
    is_poor = is_off = False
    for number, part in enumerate(parts):
        if (part is _MIXTURE and not is_off) or (
            is_poor and part not in (default, _MIXTURE)
        ):
            continue
        if is_poor and not clock.has_time_for_more:
            break
        name = "" if part is None else part.label
        try:
            found = train(number, part)
        except TrainingDivergedError as diverged:
            outcomes[name], error = "diverged", diverged
            continue
        candidates += found
        best = most_likely([each.trial for each in found])
        if best.relative_error <= WORST_ERROR and not best.is_off:
            outcomes[name] = "trained"
            break
        outcomes[name], is_poor = "poor", True
        is_off = most_likely([each.trial for each in candidates]).is_off
    if error is not None and not candidates:
        raise error
    return candidates, outcomes


def train_candidates(
    run: Run,
    networks: Sequence[BayesianModel],
    plan: TrainingPlan,
    *,
    folder: str = "",
    stage: str = "",
    untempers: bool = False,
) -> list[Candidate]:
    """Trains each network of a plan and chooses its temperature.

    Checkpoints are below the directory of the run, in a folder whose name ends with
    "/". With `untempers`, normal posteriors are taken to temperature 1 afterwards.
    """
    members, measured, parts = run.members, run.measured_rows(), len(networks)
    compares = members.folds is not None or len(plan.temperatures) > 1 or parts > 1
    folders = [folder, *(f"{folder}network_{n}" for n in range(2, parts + 1))]
    found: list[Candidate] = []
    share = _TIME_OF_TRIAL if plan.trial.epochs < plan.epochs else 1.0
    end = run.clock.elapsed + share * run.clock.seconds_before("choice")
    for number, (name, model) in enumerate(zip(plan.networks, networks, strict=True)):
        of_this = f"; network {number + 1} of {parts}: {name}" if parts > 1 else ""
        run.report.begin(parts - number)
        try:
            outcome = fit_members(
                run,
                model,
                members,
                plan.trial,
                plan.schedule,
                folder=folders[number],
                name=name,
                stage=f"{stage}{members.description}{of_this}",
                most_seconds=(end - run.clock.elapsed) / (parts - number),
                seed=run.spec.training.seed,
            )
            choice, trial = None, _NOT_COMPARED
            if compares:
                choice = choose(model, members.measuring, *measured)
                trial = choice.best
                tempered = 1.0 not in members.temperatures
                if untempers and tempered and can_untemper(model):
                    choice = _at_temperature_1(model, members, choice, *measured)
                model = choice.model
        except (TrainingDivergedError, NotFiniteError):
            # Another network or likelihood need not diverge.
            continue
        network = plan.networks[name]
        found.append(Candidate(name, network, model, choice, outcome, trial))
    if not found:
        # The rate that was asked for: by now, its schedule may have ended at 0.
        raise TrainingDivergedError(plan.learning_rate)
    return found


def fit_members(
    run: Run,
    model: BayesianModel,
    members: MemberRows,
    plan: TrainingPlan,
    schedule: KLSchedulePart,
    *,
    folder: str,
    name: str,
    most_seconds: float = math.inf,
    **options: Any,
) -> Outcome:
    """Trains a model by a plan, with the options of a run and those of `fit`.

    The steps end in time for the choice, and all that follows.
    """
    rate, clock, prepared = plan.keras_learning_rate, run.clock, run.prepared
    rows = prepared.rows
    if members.weights is not None:
        rows = rows.weighted(members.weights)
    held_out: tuple | None = None
    if run.spec.training.early_stopping is not None:
        held_out = prepared.held_out
        if prepared.held_out_weights is not None:
            held_out = (*held_out, prepared.held_out_weights)
    model.compile(Adam(rate), kl_schedule=schedule.make())
    end = clock.elapsed + most_seconds

    def seconds_left() -> float:
        return min(end - clock.elapsed, clock.seconds_before("choice"))

    return fit(
        model,
        rows,
        epochs=plan.epochs,
        batch_size=plan.batch_size,
        member_rows=members,
        held_out=held_out,
        early_stopping=run.spec.training.early_stopping,
        seconds_left=seconds_left,
        decay=rate,
        checkpoint_directory=run.directory and run.directory / folder,
        checkpoint_seconds=run.checkpoint_seconds,
        fingerprint=" ".join(
            [
                run.spec.model_dump_json(),
                "" if run.parent is None else run.parent.sha256,
                f"{plan.temperatures} {folder} {name}",
            ]
        ),
        xla=run.xla,
        report=run.report,
        should_stop=run.should_stop,
        **options,
    )


def _at_temperature_1(
    model: BayesianModel, members: MemberRows, choice: TemperatureChoice, *rows: Any
) -> TemperatureChoice:
    """Returns the members of Bayes' rule, calibrated anew.

    They are those of the highest temperature, which untempering changes least.
    """
    temperature = max(members.temperatures)
    number = members.temperatures.index(temperature)
    model = model.members.mixture(members.group(number))
    untemper(model, temperature)
    model.assign_temperature(1.0)
    found = choose(model, replace(members.measuring, temperatures=(1.0,)), *rows)
    return replace(found, trials=(*choice.trials, *found.trials))


def train_after_trial(run: Run) -> tuple[Candidate, int]:
    """Goes on training the members of the best temperature of the best network.

    If several members left out each row, all of these but one now train on it, too. The
    number of steps is 0 if rows left out gain nothing: then the network is as before.
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
    """Returns members of which one, drawn by group, still leaves out each row."""
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
