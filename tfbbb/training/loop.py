"""Training of a table's model by `fit`, which can stop and continue."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Self

import keras
import numpy as np
import tensorflow as tf
from keras.optimizers.schedules import LearningRateSchedule

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.base.numbers import positive_integer
from tfbbb.base.private_apis import without_symbolic_build
from tfbbb.base.types import Logs, Options, Structure, Tensor
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.training_rows import TrainingRows
from tfbbb.tables.memory_rows import MemoryRows
from tfbbb.training.checkpoint import (
    Checkpoints,
    assign,
    named_arrays,
    training_fingerprint,
)
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.job_clock import Interrupted, Progress
from tfbbb.training.spec.training import EarlyStopping

_HELD_OUT_ROWS_AT_ONCE = 4096
_MOST_ROUNDS, _FEWEST_ROUNDS = 200, 50
_VALIDATIONS_TO_STOP = 50
# Calls from Python then cost next to nothing, and a training still stops soon.
_SECONDS_PER_EXECUTION = 0.2
# Of training steps, as measured on two cores.
_SECONDS_PER_STEP, _OPERATIONS_PER_ROW, _OPERATIONS_PER_SECOND = 0.002, 6, 3e10
_SECONDS_BETWEEN_REPORTS = 2.0
_OF_BEST_EPOCH = "best epoch/"
_ALL_ROWS = MemberRows(temperatures=(1.0,), group_size=1, folds=None)
HeldOut = tuple[Structure, np.ndarray] | tuple[Structure, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Outcome:
    """How a training ended: steps, completed epochs, and the epoch of the weights."""

    step: int
    epoch: int
    best_epoch: int
    seconds: float = field(default=0.0, compare=False)
    out_of_time: bool = False


def fit(
    model: BayesianModel,
    rows: MemoryRows,
    *,
    epochs: int,
    batch_size: int,
    seed: int = 0,
    member_rows: MemberRows = _ALL_ROWS,
    held_out: HeldOut | None = None,
    early_stopping: EarlyStopping | None = None,
    seconds_left: Callable[[], float] = lambda: math.inf,
    decay: LearningRateSchedule | None = None,
    checkpoint_directory: Path | None = None,
    checkpoint_seconds: float = 30.0,
    fingerprint: str = "",
    xla: bool = False,
    stage: str = "",
    report: Callable[[Progress], object] = lambda progress: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Trains a compiled model by its `fit`, over an endless dataset of its rows.

    An epoch is one pass over the rows, in an order that is a function of seed and
    epoch. A training that was stopped or killed goes on from its latest checkpoint. If
    that was written at the end of a round, it comes to the same weights as one that
    was not stopped.
    """
    positive_integer("epochs", epochs)
    positive_integer("batch_size", batch_size)
    if early_stopping is not None and held_out is None:
        raise ValueError(
            "Early stopping needs held-out rows: pass `held_out`. "
            f"Received: early_stopping={early_stopping!r}, held_out=None"
        )
    steps_per_epoch = ceil(rows.num_rows / batch_size)
    rounds = Rounds.plan(model, epochs, steps_per_epoch, batch_size, early_stopping)
    checkpoints = None
    if checkpoint_directory is not None:
        whole = training_fingerprint(
            model,
            rows=rows.sha256,
            epochs=epochs,
            batch_size=batch_size,
            seed=seed,
            early_stopping=early_stopping and early_stopping.model_dump(),
            fingerprint=fingerprint,
        )
        checkpoints = Checkpoints(checkpoint_directory, checkpoint_seconds, whole)
    in_time = None
    if decay is not None and math.isfinite(seconds_left()):
        in_time = DecayInTime(decay, rounds.steps)
    best = None
    if early_stopping is not None:
        best = rounds.early_stopping(model, early_stopping)
    steps = Steps(
        rounds, best, checkpoints, seconds_left, in_time, stage, report, should_stop
    )
    options: Options = {}
    if held_out is not None:
        blocks = tf.data.Dataset.from_tensor_slices(held_out)
        options = {"validation_data": blocks.batch(_HELD_OUT_ROWS_AT_ONCE)}
    epoch, batch = divmod(steps.first, steps_per_epoch)
    with _set_up(model, rounds, in_time, xla):
        model.fit_rows(
            TrainingRows(
                rows.targets(),
                member_rows.total_weight(rows.num_rows),
                member_sizes=member_rows.sizes,
                member_temperatures=member_rows.relative_temperatures,
                mean_weights=member_rows.mean_weights,
                exposures=rows.exposures(),
            ),
            rows.batches(batch_size, seed=seed, epoch=epoch, batch=batch),
            epochs=rounds.number,
            initial_epoch=steps.first // rounds.steps_per_round,
            steps_per_epoch=rounds.steps_per_round,
            callbacks=[steps] if best is None else [best, steps],
            verbose=0,
            shuffle=False,
            **options,
        )
    epoch = best_epoch = rounds.completed_epochs(steps.number)
    if best is not None and best.best_weights is not None:
        best_epoch = rounds.epochs_at(best.best_epoch)
    return Outcome(
        step=steps.number,
        epoch=epoch,
        best_epoch=best_epoch,
        seconds=steps.seconds,
        out_of_time=steps.out_of_time,
    )


@contextmanager
def _set_up(
    model: BayesianModel, rounds: "Rounds", decay: "DecayInTime | None", xla: bool
) -> Iterator[None]:
    """Sets what the steps need, and leaves no trace of it in the model."""
    model.steps_per_execution = rounds.steps_per_execution
    if decay is not None:
        model.optimizer.learning_rate = decay
    if xla:
        # Keras' `jit_compile` would compile the loop over batches as well.
        compiled = tf.function(model.train_step, jit_compile=True)
        model.train_step = compiled  # type: ignore[method-assign]
    try:
        with without_symbolic_build(model):
            yield
    finally:
        model.steps_per_execution = 1
        model.train_function = model.test_function = None
        if xla:
            del model.train_step
        if decay is not None:
            model.optimizer.learning_rate = decay.by_steps


@dataclass(frozen=True)
class Rounds:
    """How the steps of a training are divided into rounds and executions.

    A round is an epoch of Keras: some passes over the rows, after which the training
    reports, validates and may stop. An execution takes several steps of a graph at
    once; a round has whole executions, and so may take a few steps more than its
    passes.
    """

    epochs: int
    steps_per_epoch: int
    number: int
    executions: int
    steps_per_execution: int

    @classmethod
    def plan(
        cls,
        model: BayesianModel,
        epochs: int,
        steps_per_epoch: int,
        batch_size: int,
        early_stopping: EarlyStopping | None,
    ) -> Self:
        """Divides the steps of a training.

        Each execution is one step where the temperature changes while the model trains.
        """
        seconds = seconds_per_step(model, batch_size)
        settled = model.kl_schedule.has_settled(0)
        at_once = max(1, int(_SECONDS_PER_EXECUTION / seconds)) if settled else 1
        passes = ceil(epochs / _MOST_ROUNDS)
        if early_stopping is not None:
            passes = ceil(epochs / _VALIDATIONS_TO_STOP)
        elif settled:
            in_execution = min(at_once // steps_per_epoch, epochs // _FEWEST_ROUNDS)
            passes = max(passes, in_execution)
        executions = ceil(passes * steps_per_epoch / at_once)
        return cls(
            epochs=epochs,
            steps_per_epoch=steps_per_epoch,
            number=ceil(epochs / passes),
            executions=executions,
            steps_per_execution=ceil(passes * steps_per_epoch / executions),
        )

    @property
    def steps_per_round(self) -> int:
        """Number of steps of a round."""
        return self.executions * self.steps_per_execution

    @property
    def steps(self) -> int:
        """Number of steps of all rounds."""
        return self.number * self.steps_per_round

    def completed_epochs(self, step: int) -> int:
        """Returns the number of passes over the rows after some steps."""
        return step // self.steps_per_epoch

    def epochs_at(self, number: int) -> int:
        """Returns the number of passes over the rows after a round, from 0 on."""
        return self.completed_epochs((number + 1) * self.steps_per_round)

    def early_stopping(
        self, model: BayesianModel, rule: EarlyStopping
    ) -> keras.callbacks.EarlyStopping:
        """Returns what keeps the weights of the best round, and stops after it.

        It looks at no round before the temperature has settled: a colder posterior
        fits better than the final one will.
        """
        settled = (
            number
            for number in range(self.number)
            if model.kl_schedule.has_settled(self.epochs_at(number) - 1)
        )
        return keras.callbacks.EarlyStopping(
            "val_nll",
            min_delta=rule.min_delta,
            patience=ceil(rule.patience / self.epochs_at(0)),
            mode="min",
            restore_best_weights=True,
            start_from_epoch=next(settled, self.number),
        )


def seconds_per_step(model: BayesianModel, batch_size: int) -> float:
    """Returns about the seconds of a step on a processor of speed 1.

    A step multiplies each parameter with each row a few times.
    """
    operations = _OPERATIONS_PER_ROW * batch_size * model.count_params()
    return _SECONDS_PER_STEP + operations / _OPERATIONS_PER_SECOND


class DecayInTime(LearningRateSchedule):
    """Follows a decay by steps, or by the share of the time if that is greater.

    A training that its time limit ends early would stop at a learning rate that is
    still high, where the weights are noisy.
    """

    def __init__(self, decay: LearningRateSchedule, steps: int):
        self.by_steps, self._steps = decay, steps
        self._skipped = tf.Variable(0.0, trainable=False)

    def __call__(self, step: Tensor) -> Tensor:
        return self.by_steps(keras.ops.cast(step, "float32") + self._skipped)

    def follow(self, step: int, share: float) -> None:
        """Skips what is missing to a share of the decay."""
        skipped = min(share, 1.0) * self._steps - step
        self._skipped.assign(max(skipped, float(self._skipped.numpy())))


class Steps(keras.callbacks.Callback):
    """Times, checks, reports and saves the steps of a training.

    It ends a training at once that is not finite, that has no seconds left, or that is
    asked to stop.
    """

    def __init__(
        self,
        rounds: Rounds,
        best: keras.callbacks.EarlyStopping | None,
        checkpoints: Checkpoints | None,
        seconds_left: Callable[[], float],
        decay: DecayInTime | None,
        stage: str,
        report: Callable[[Progress], object],
        should_stop: Callable[[], bool],
    ) -> None:
        super().__init__()
        self.seconds, self.out_of_time = 0.0, False
        self._rounds, self._best, self._checkpoints = rounds, best, checkpoints
        self._seconds_left, self._decay = seconds_left, decay
        self._stage, self._report, self._should_stop = stage, report, should_stop
        self._latest = None if checkpoints is None else checkpoints.read()
        self.first = self._saved = self._latest[0] if self._latest else 0
        self._before = self._seen_at = 0.0
        self._compiling: float | None = None
        # The first execution, which compiles, is reported at once.
        self._reported_at = -math.inf

    @property
    def number(self) -> int:
        """Number of steps that were taken."""
        return int(self.model.optimizer.iterations.numpy())

    def on_train_begin(self, logs: Logs = None) -> None:
        self._learning_rate = float(self.model.optimizer.learning_rate.numpy())
        if self._latest is not None:
            _, state, arrays = self._latest
            self._latest = None
            assign(self.model, arrays)
            self.seconds = self._before = state["seconds"]
            best = self._best
            if best is not None and state["best"] is not None:
                best.best, best.best_epoch, best.wait = state["best"]
                names = [name for name in arrays if name.startswith(_OF_BEST_EPOCH)]
                best.best_weights = [arrays[name] for name in names]
        self._seen_at = time.monotonic()

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        if self._should_stop():
            self._save()
            of_all = f"{self.number} of {self._rounds.steps} steps"
            raise Interrupted(f"Training stopped after {of_all}.")

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        # One step that is not finite makes the mean loss not finite.
        self._check((logs or {})["loss"])
        self._follow_time()
        if batch + 1 >= self._rounds.steps_per_round:
            return
        if time.monotonic() > self._reported_at + _SECONDS_BETWEEN_REPORTS:
            self._send({})
        if self._checkpoints is not None and self._checkpoints.due:
            self._save()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        given = logs or {}
        self._check(given.get("val_nll", 0.0))
        names = ("loss", "nll", "kl", "val_nll")
        self._send({name: given[name] for name in names if name in given})
        is_due = self._checkpoints is not None and self._checkpoints.due
        if is_due and not self.model.stop_training:
            self._save()

    def _check(self, figure: float) -> None:
        if not math.isfinite(figure):
            raise TrainingDivergedError(self._learning_rate)

    def _follow_time(self) -> None:
        passed = time.monotonic() - self._seen_at
        self._seen_at += passed
        self.seconds += passed
        if self._compiling is None:
            self._compiling = passed
        left = self._seconds_left() - self._before
        if left <= 0.0:
            self.out_of_time = self.model.stop_training = True
        elif self._decay is not None:
            # The compilation is no part of the decay.
            used = self.seconds - self._compiling
            self._decay.follow(self.number, used / (used + left))

    def _send(self, figures: dict[str, float]) -> None:
        self._reported_at = time.monotonic()
        step = self.number
        self._report(
            Progress(
                epoch=self._rounds.completed_epochs(step),
                epochs=self._rounds.epochs,
                step=step,
                steps=max(step, self._rounds.steps),
                saved_step=self._saved,
                seconds=self.seconds,
                stage=self._stage,
                figures=figures,
            )
        )

    def _save(self) -> None:
        """Writes a checkpoint, if there is a directory for it."""
        if self._checkpoints is None:
            return
        arrays, best, of_best = named_arrays(self.model), self._best, None
        if best is not None and best.best_weights is not None:
            of_best = [best.best, best.best_epoch, best.wait]
            for number, weight in enumerate(best.best_weights):
                arrays[f"{_OF_BEST_EPOCH}{number}"] = weight
        state = {"seconds": self.seconds, "best": of_best}
        self._checkpoints.write(self.number, state, arrays)
        self._saved = self.number
