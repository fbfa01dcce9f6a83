"""Trains the networks that are tried for a table, one after the other."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.bayes import kl_schedules
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.optimizers import Adam
from tfbbb.prediction.result import NotFiniteError
from tfbbb.tables.memory_rows import BatchSource, MemoryRows
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.devices import describe_devices
from tfbbb.training.loop import HeldOut, Outcome, fit
from tfbbb.training.plan import TrainingPlan
from tfbbb.training.preparation import Prepared
from tfbbb.training.progress import Progress
from tfbbb.training.spec import ModelSpec
from tfbbb.training.spec.training import TrainingSpec
from tfbbb.training.temperature_choice import TemperatureChoice, Trial, choose
from tfbbb.training.time_limit import TimeLimit
from tfbbb.training.untempering import can_untemper, untemper


@dataclass(frozen=True)
class Candidate:
    """A trained network.

    Attributes:
        name: What tells the network apart from the others of the plan.
        network: The network, without members.
        model: The mixture of the members of its best temperature.
        choice: How the temperature was chosen; None if there was nothing to choose.
        outcome: How the training ended.
        compared: The trial that is compared with those of other networks; None for the
            best one of `choice`.
    """

    name: str
    network: ModelSpec
    model: BayesianModel
    choice: TemperatureChoice | None
    outcome: Outcome
    compared: Trial | None = None

    @property
    def trial(self) -> Trial | None:
        """The trial that is compared with those of other networks, if there is one."""
        if self.compared is not None or self.choice is None:
            return self.compared
        return self.choice.best

    @property
    def log_likelihood(self) -> float:
        """That of rows that no member trained on, in nats per row; 0 if not chosen."""
        return 0.0 if self.trial is None else self.trial.log_likelihood

    @property
    def relative_error(self) -> float:
        """Squared error of these rows over that of their mean; 0 if not chosen."""
        return 0.0 if self.trial is None else self.trial.relative_error

    @property
    def is_off(self) -> bool:
        """Whether the sum of their predictions is off; False if not chosen."""
        return self.trial is not None and self.trial.is_off


def train_candidates(
    models: Iterable[BayesianModel],
    plan: TrainingPlan,
    prepared: Prepared,
    members: MemberRows,
    training: TrainingSpec,
    limit: TimeLimit,
    *,
    directory: Path | None,
    checkpoint_seconds: float,
    fingerprint: str,
    xla: bool,
    validate_left_out: bool,
    reserve: Callable[[], float],
    untempers: bool = False,
    report: Callable[[Progress], object],
    should_stop: Callable[[], bool],
) -> list[Candidate]:
    """Trains each network of a plan and chooses its temperature.

    With `untempers`, normal posteriors are taken to temperature 1 after the choice.
    """
    rows: BatchSource = prepared.rows
    if members.weights is not None:
        assert isinstance(rows, MemoryRows)
        rows = rows.weighted(members.weights)
    number_of_all, seconds = len(plan.networks), 0.0
    held_out: HeldOut | None = None
    if len(prepared.held_out_rows):
        held_out = prepared.held_out
        if prepared.held_out_weights is not None:
            held_out = (*held_out, prepared.held_out_weights)
    measured = measured_rows(prepared, members)
    if validate_left_out and members.left_out_weights is not None:
        inputs, targets, _ = measured
        weights = members.measuring.left_out_weights
        assert weights is not None
        held_out = inputs, targets, weights
    compares = members.folds is not None or len(plan.temperatures) > 1
    found: list[Candidate] = []
    for number, (name, model) in enumerate(zip(plan.networks, models, strict=True)):
        of_this = directory
        devices = describe_devices(training.devices)
        stage = "; ".join(filter(None, [members.description, devices]))
        if number_of_all > 1:
            stage = f"{stage}; network {number + 1} of {number_of_all}: {name}"
        if directory is not None and number:
            of_this = directory / f"network_{number + 1}"
        schedule = kl_schedules.make(plan.schedule.name, **plan.schedule.options())
        rate = plan.keras_learning_rate
        with model.distribute_strategy.scope():
            model.compile(Adam(rate), kl_schedule=schedule)
        try:
            outcome = fit(
                model,
                rows,
                epochs=plan.epochs,
                batch_size=plan.batch_size,
                seed=training.seed,
                member_rows=members,
                held_out=held_out,
                early_stopping=training.early_stopping,
                max_seconds=limit.of_steps(number, number_of_all, seconds),
                reserve=reserve if number + 1 == number_of_all else lambda: 0.0,
                decay=None if plan.learning_rate.decay == "constant" else rate,
                checkpoint_directory=of_this,
                checkpoint_seconds=checkpoint_seconds,
                fingerprint=f"{fingerprint} {plan.temperatures} {name}",
                xla=xla,
                stage=stage,
                report=_of_all(report, number, number_of_all, seconds),
                should_stop=should_stop,
            )
            seconds += outcome.seconds
            choice = compared = None
            if compares or number_of_all > 1:
                choice = choose(model, members.measuring, *measured)
                if (
                    untempers
                    and 1.0 not in members.temperatures
                    and can_untemper(model)
                ):
                    compared = choice.best
                    choice = _at_temperature_1(model, members, choice, *measured)
                model = choice.model
        except (TrainingDivergedError, NotFiniteError):
            # Another network or likelihood need not diverge.
            continue
        found.append(
            Candidate(name, plan.networks[name], model, choice, outcome, compared)
        )
    if not found:
        # The rate that was asked for: by now, its schedule may have ended at 0.
        raise TrainingDivergedError(plan.learning_rate.initial or 0.0)
    return found


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


def measured_rows(prepared: Prepared, members: MemberRows) -> tuple:
    """Returns inputs, targets and weights of the rows that give the figures."""
    if members.folds is None:
        return *prepared.held_out, prepared.held_out_weights
    assert isinstance(prepared.rows, MemoryRows)
    inputs, targets = prepared.rows.at(members.left_out)
    weights = prepared.weights
    return inputs, targets, None if weights is None else weights[members.left_out]


def _of_all(
    report: Callable[[Progress], object], number: int, parts: int, seconds: float
) -> Callable[[Progress], object]:
    """Returns the report of one of several trainings of the same length."""

    def reported(at: Progress) -> None:
        report(
            replace(
                at,
                epoch=number * at.epochs + at.epoch,
                epochs=parts * at.epochs,
                step=number * at.steps + at.step,
                steps=parts * at.steps,
                saved_step=number * at.steps + at.saved_step,
                seconds=seconds + at.seconds,
            )
        )

    return reported
