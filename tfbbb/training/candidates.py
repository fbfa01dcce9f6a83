"""Trains the networks that are tried for a table, one after the other."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.optimizers import Adam
from tfbbb.prediction.result import NotFiniteError
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.left_out_error import Trial
from tfbbb.training.loop import Outcome, fit
from tfbbb.training.plan import TrainingPlan
from tfbbb.training.run import Candidate, Run
from tfbbb.training.spec.families import KLSchedulePart
from tfbbb.training.temperature_choice import TemperatureChoice, choose
from tfbbb.training.untempering import can_untemper, untemper

# Of the time of the steps, where members go on after the trial.
_TIME_OF_TRIAL = 0.75
# Of a network with one temperature that was compared with no other.
_NOT_COMPARED = Trial(temperature=1.0, log_likelihood=0.0, factor=1.0)


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
        raise TrainingDivergedError(plan.learning_rate.initial or 0.0)
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
        decay=None if plan.learning_rate.decay == "constant" else rate,
        checkpoint_directory=run.directory and run.directory / folder,
        checkpoint_seconds=run.checkpoint_seconds,
        fingerprint=" ".join(
            [
                run.spec.model_dump_json(),
                run.name_of_parent,
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
