"""Training of a table's model that can stop at any step and continue exactly there."""

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from keras.optimizers.schedules import LearningRateSchedule

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.base.numbers import positive_integer
from tfbbb.base.types import Config, Structure
from tfbbb.bayes.kl_schedules.training_temperature import TrainingTemperature
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.training_rows import TrainingRows
from tfbbb.tables.memory_rows import BatchSource
from tfbbb.training.checkpoint import Checkpoint, Checkpoints
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.decay_in_time import DecayInTime
from tfbbb.training.early_stopping import BestEpoch
from tfbbb.training.progress import Interrupted, Progress
from tfbbb.training.spec.training import EarlyStopping
from tfbbb.training.steps import Steps
from tfbbb.training.timetable import Timetable
from tfbbb.training.training_state import (
    assign,
    named_arrays,
    training_fingerprint,
)
from tfbbb.training.validation import HeldOutEvaluator
from tfbbb.training.xla import XLA, XLAChoice, choose_xla, may_use_xla

_MOST_VALIDATIONS = 20
_MOST_VALIDATIONS_TO_STOP = 50
_SECONDS_BETWEEN_REPORTS = 2.0
_OF_BEST_EPOCH = "best epoch/"
# Of `max_seconds`, for what follows the steps.
_MOST_RESERVED = 0.75
# What follows the steps uses threads less than the first step does.
_MOST_THREADS = 2.0
HeldOut = tuple[Structure, np.ndarray] | tuple[Structure, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Outcome:
    """How a training ended.

    Attributes:
        step: Number of steps that were taken.
        epoch: Number of epochs that were completed.
        best_epoch: The epoch whose weights the model has.
        seconds: Time of the steps.
        out_of_time: Whether `max_seconds` ended the training.
        losses: The loss at the end of each reported epoch, a mean over its steps.
        xla: Whether XLA compiled the steps, and why; None if it was not tried.
    """

    step: int
    epoch: int
    best_epoch: int
    seconds: float = field(default=0.0, compare=False)
    out_of_time: bool = False
    losses: tuple[float, ...] = field(default=(), compare=False)
    xla: XLAChoice | None = field(default=None, compare=False)


def fit(
    model: BayesianModel,
    rows: BatchSource,
    *,
    epochs: int,
    batch_size: int,
    seed: int = 0,
    member_rows: MemberRows | None = None,
    held_out: HeldOut | None = None,
    early_stopping: EarlyStopping | None = None,
    max_seconds: float = math.inf,
    reserve: float = 0.0,
    decay: LearningRateSchedule | None = None,
    checkpoint_directory: Path | None = None,
    checkpoint_seconds: float = 30.0,
    fingerprint: str = "",
    xla: XLA = "auto",
    stage: str = "",
    report: Callable[[Progress], object] = lambda progress: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Trains a compiled model, to the same weights however often it is interrupted.

    An epoch is one pass over the rows, in an order that is a function of seed and
    epoch. A training that was stopped or killed goes on from its latest checkpoint
    with the weights, the optimizer, the random states, the metrics and the place in
    the epoch that it had.

    The learning rate follows the optimizer's own schedule, the weight of the KL
    divergence the `kl_schedule` that the model was compiled with.
    """
    positive_integer("epochs", epochs)
    positive_integer("batch_size", batch_size)
    if early_stopping is not None and held_out is None:
        raise ValueError(
            "Early stopping needs held-out rows: pass `held_out`. "
            f"Received: early_stopping={early_stopping!r}, held_out=None"
        )
    steps_per_epoch = -(-rows.num_rows // batch_size)
    training_rows = TrainingRows(rows.targets(), rows.num_rows)
    if member_rows is not None:
        training_rows = TrainingRows(
            training_rows.targets,
            member_rows.total_weight(rows.num_rows),
            member_sizes=member_rows.sizes,
            member_temperatures=member_rows.relative_temperatures,
            mean_weights=member_rows.mean_weights,
        )
    temperature = model.training_temperature(training_rows.size)
    with model.distribute_strategy.scope(), model.training_on(training_rows):
        model.optimizer.build(model.trainable_variables)
        in_time = None
        if decay is not None and math.isfinite(max_seconds):
            in_time = DecayInTime(decay, epochs * steps_per_epoch)
        training = _Training(
            model,
            temperature,
            _timetable(epochs, steps_per_epoch, held_out, early_stopping),
            held_out,
            early_stopping,
            max_seconds,
            reserve,
            in_time,
            stage,
            report,
        )
        checkpoints = latest = None
        if checkpoint_directory is not None:
            whole = training_fingerprint(
                model,
                held_out,
                rows=rows.sha256,
                epochs=epochs,
                batch_size=batch_size,
                seed=seed,
                early_stopping=early_stopping and early_stopping.model_dump(),
                fingerprint=fingerprint,
            )
            checkpoints = Checkpoints(checkpoint_directory, checkpoint_seconds, whole)
            if (latest := checkpoints.read()) is not None:
                training.resume(latest)
        epoch, batch = divmod(training.step, steps_per_epoch)
        batches = rows.batches(batch_size, seed=seed, epoch=epoch, batch=batch)
        with (
            in_time.used_by(model.optimizer) if in_time else nullcontext(),
            Steps(model, batches, temperature, steps_per_epoch) as steps,
        ):
            if latest is None and may_use_xla(xla, model):
                training.choose_xla(xla, steps)
                steps.restart(batches)
                if checkpoints is not None:
                    # The times of a training that starts again may differ.
                    training.write(checkpoints)
            steps.use_xla = training.uses_xla
            training.run(steps, checkpoints, should_stop)
        return training.end()


def _timetable(
    epochs: int,
    steps_per_epoch: int,
    held_out: HeldOut | None,
    early_stopping: EarlyStopping | None,
) -> Timetable:
    validations = _MOST_VALIDATIONS_TO_STOP if early_stopping else _MOST_VALIDATIONS
    return Timetable(epochs, steps_per_epoch, 0 if held_out is None else validations)


class _Training:
    """A training between two executions of its steps.

    Attributes:
        step: Number of steps taken.
    """

    def __init__(
        self,
        model: BayesianModel,
        temperature: TrainingTemperature,
        timetable: Timetable,
        held_out: HeldOut | None,
        early_stopping: EarlyStopping | None,
        max_seconds: float,
        reserve: float,
        decay: DecayInTime | None,
        stage: str,
        report: Callable[[Progress], object],
    ):
        self.step = 0
        self._saved_step = 0
        self._seconds = 0.0
        self._losses: list[float] = []
        self._max_seconds, self._reserve, self._decay = max_seconds, reserve, decay
        self._first_seconds: float | None = None
        self._reserved = 0.0
        self._stopped = self._out_of_time = False
        self._model = model
        self._temperature = temperature
        self._timetable = timetable
        self._validation = (
            None if held_out is None else HeldOutEvaluator(model, *held_out)
        )
        self._best = None if early_stopping is None else BestEpoch(early_stopping)
        self._stage = stage
        self._xla: XLAChoice | None = None
        self._report = report
        self._reported_at = time.monotonic()
        # The rate at the start: a schedule may lower it.
        self._learning_rate = float(model.optimizer.learning_rate.numpy())
        model.reset_metrics()

    @property
    def uses_xla(self) -> bool:
        return self._xla is not None and self._xla.used

    def choose_xla(self, xla: XLA, steps: Steps) -> None:
        """Decides whether XLA compiles the steps; the model stays as it is."""
        self._set_xla(
            choose_xla(
                xla,
                steps,
                self._model,
                num_steps=self._timetable.steps,
                max_seconds=self._max_seconds,
                spend=self._count,
            )
        )

    def _set_xla(self, choice: XLAChoice | None) -> None:
        self._xla = choice
        if choice is not None:
            self._stage = "; ".join(filter(None, [self._stage, str(choice)]))

    def run(
        self,
        steps: Steps,
        checkpoints: Checkpoints | None,
        should_stop: Callable[[], bool],
    ) -> None:
        """Takes the remaining steps."""
        while self.step < self._timetable.steps and not self._stopped:
            if should_stop():
                if checkpoints is not None:
                    self.write(checkpoints)
                raise Interrupted(
                    f"Training stopped after {self.step} of {self._timetable.steps} "
                    "steps."
                )
            stop = self._timetable.next_stop(self.step)
            began, worked = time.monotonic(), time.process_time()
            self.step = steps.take(self.step, stop)
            self._count(time.monotonic() - began, time.process_time() - worked)
            self._check_loss()
            self._stopped |= self._out_of_time
            if self.step == stop:
                self._end_epoch()
            elif time.monotonic() > self._reported_at + _SECONDS_BETWEEN_REPORTS:
                self._send({})
            if checkpoints is not None and checkpoints.due:
                self.write(checkpoints)

    def _count(self, seconds: float, processor_seconds: float = 0.0) -> None:
        if self._first_seconds is None:
            self._first_seconds = seconds
            work = max(seconds, min(processor_seconds, _MOST_THREADS * seconds))
            most = _MOST_RESERVED * self._max_seconds
            self._reserved = min(self._reserve * work, most)
        self._seconds += seconds
        self._out_of_time = self._seconds + self._reserved >= self._max_seconds
        if self._decay is not None and not self._out_of_time:
            # The compilation is no part of the decay.
            used = self._seconds - self._first_seconds
            usable = self._max_seconds - self._reserved - self._first_seconds
            self._decay.follow(self.step, used / usable)

    def end(self) -> Outcome:
        """Leaves the model with its final weights and objective."""
        model = self._model
        epoch = self.step // self._timetable.steps_per_epoch
        best = self._best.restore(model) if self._best else None
        self._temperature.assign(self._temperature.target)
        return Outcome(
            step=self.step,
            epoch=epoch,
            best_epoch=best or epoch,
            seconds=self._seconds,
            out_of_time=self._out_of_time,
            losses=tuple(self._losses),
            xla=self._xla,
        )

    def resume(self, checkpoint: Checkpoint) -> None:
        """Continues from a checkpoint of this training."""
        self.step = self._saved_step = checkpoint.step
        self._stopped = checkpoint.state["stopped"]
        self._seconds = checkpoint.state.get("seconds", 0.0)
        self._out_of_time = checkpoint.state.get("out_of_time", False)
        self._losses = list(checkpoint.state.get("losses", ()))
        self._set_xla(XLAChoice.from_state(checkpoint.state.get("xla")))
        assign(self._model, checkpoint.arrays)
        if self._best is not None:
            weights = [
                array
                for name, array in checkpoint.arrays.items()
                if name.startswith(_OF_BEST_EPOCH)
            ]
            self._best.load_state(checkpoint.state["best"], weights)

    def write(self, checkpoints: Checkpoints) -> None:
        """Writes a checkpoint."""
        state: Config = {"stopped": self._stopped}
        arrays = named_arrays(self._model)
        if self._best is not None:
            state["best"] = self._best.state()
            for number, weight in enumerate(self._best.weights):
                arrays[f"{_OF_BEST_EPOCH}{number}"] = weight
        state["seconds"] = self._seconds
        state["out_of_time"] = self._out_of_time
        state["losses"] = self._losses
        state["xla"] = self._xla and self._xla.to_state()
        checkpoints.write(self.step, state, arrays)
        self._saved_step = self.step

    def _end_epoch(self) -> None:
        epoch = self.step // self._timetable.steps_per_epoch
        metrics = self._model.get_metrics_result()
        figures = {name: float(metrics[name]) for name in ("loss", "nll", "kl")}
        self._losses.append(figures["loss"])
        self._model.reset_metrics()
        if self._validation is not None and self._timetable.validates(epoch):
            figures["val_nll"] = self._validation.nll()
            self._check(figures["val_nll"])
            # Before, a colder posterior fits better than the final one will.
            settled = self._model.kl_schedule.has_settled(epoch - 1)
            if self._best is not None and settled:
                self._best.update(self._model, epoch, figures["val_nll"])
                self._stopped |= self._best.is_out_of_patience(epoch)
        self._send(figures)

    def _send(self, figures: dict[str, float]) -> None:
        timetable = self._timetable
        self._reported_at = time.monotonic()
        self._report(
            Progress(
                epoch=self.step // timetable.steps_per_epoch,
                epochs=timetable.epochs,
                step=self.step,
                steps=timetable.steps,
                saved_step=self._saved_step,
                seconds=self._seconds,
                stage=self._stage,
                figures=figures,
            )
        )

    def _check_loss(self) -> None:
        # One step that is not finite makes the mean not finite.
        self._check(float(self._model.get_metrics_result()["loss"]))

    def _check(self, figure: float) -> None:
        if not math.isfinite(figure):
            raise TrainingDivergedError(self._learning_rate)
