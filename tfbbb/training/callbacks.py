"""The callbacks of a training of a table."""

import math
import time
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf
from keras.optimizers.schedules import LearningRateSchedule

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.base.types import Logs, Tensor
from tfbbb.training.checkpoint import Checkpoints, assign, named_arrays
from tfbbb.training.progress import Interrupted, Progress
from tfbbb.training.rounds import Rounds
from tfbbb.training.spec.training import EarlyStopping

_SECONDS_BETWEEN_REPORTS = 2.0
_OF_BEST_EPOCH = "best epoch/"


class FiniteSteps(keras.callbacks.Callback):
    """Ends a training at once whose loss, or that of held-out rows, is not finite."""

    def __init__(self, learning_rate: float) -> None:
        super().__init__()
        self._learning_rate = learning_rate

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        self._check((logs or {})["loss"])

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self._check((logs or {}).get("val_nll", 0.0))

    def _check(self, figure: float) -> None:
        if not math.isfinite(figure):
            raise TrainingDivergedError(self._learning_rate)


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


class TimeOfSteps(keras.callbacks.Callback):
    """Times the steps, and ends them when no seconds are left for them."""

    def __init__(self, seconds_left: Callable[[], float]) -> None:
        super().__init__()
        self.seconds, self.is_over = 0.0, False
        self.decay: DecayInTime | None = None
        self._seconds_left = seconds_left
        self._before = self._seen_at = 0.0
        self._first_seconds: float | None = None

    def resume(self, seconds: float) -> None:
        """Counts the seconds of the steps that an earlier attempt took."""
        self.seconds = self._before = seconds

    def on_train_begin(self, logs: Logs = None) -> None:
        self._seen_at = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        passed = time.monotonic() - self._seen_at
        self._seen_at += passed
        self.seconds += passed
        if self._first_seconds is None:
            self._first_seconds = passed
        left = self._seconds_left() - self._before
        if left <= 0.0:
            self.is_over = self.model.stop_training = True
        elif self.decay is not None:
            # The compilation is no part of the decay.
            used = self.seconds - self._first_seconds
            self.decay.follow(_step(self.model), used / (used + left))


class BestEpoch(keras.callbacks.Callback):
    """Keeps the weights of the best epoch, and stops if none is better for long."""

    def __init__(self, rule: EarlyStopping, rounds: Rounds) -> None:
        super().__init__()
        self._rule, self._rounds = rule, rounds
        self.epoch, self.val_nll = 0, math.inf
        self.weights: list[np.ndarray] = []

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        # Before, a colder posterior fits better than the final one will.
        passes = _completed_epochs(self.model, self._rounds)
        val_nll = (logs or {}).get("val_nll")
        if val_nll is None or not self.model.kl_schedule.has_settled(passes - 1):
            return
        if val_nll < self.val_nll - self._rule.min_delta:
            self.epoch, self.val_nll = passes, val_nll
            self.weights = self.model.get_weights()
        if passes - self.epoch >= self._rule.patience:
            self.model.stop_training = True

    def restore(self) -> int | None:
        """Restores the best weights and returns their epoch; None without any."""
        if self.epoch:
            self.model.set_weights(self.weights)
        return self.epoch or None


class Reports(keras.callbacks.Callback):
    """Reports the progress after each round, and every few seconds within it."""

    def __init__(
        self,
        rounds: Rounds,
        timed: TimeOfSteps,
        stage: str,
        report: Callable[[Progress], object],
    ) -> None:
        super().__init__()
        self.losses: list[float] = []
        self.saved_step = 0
        self._rounds, self._timed = rounds, timed
        self._stage, self._report = stage, report
        # The first execution, which compiles, is reported at once.
        self._reported_at = -math.inf

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        is_last = batch + 1 >= self._rounds.steps_per_round
        due = self._reported_at + _SECONDS_BETWEEN_REPORTS
        if not is_last and time.monotonic() > due:
            self._send({})

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        given = logs or {}
        names = ("loss", "nll", "kl", "val_nll")
        self.losses.append(given["loss"])
        self._send({name: given[name] for name in names if name in given})

    def _send(self, figures: dict[str, float]) -> None:
        rounds = self._rounds
        self._reported_at = time.monotonic()
        step = _step(self.model)
        self._report(
            Progress(
                epoch=_completed_epochs(self.model, rounds),
                epochs=rounds.epochs,
                step=step,
                steps=max(step, rounds.steps),
                saved_step=self.saved_step,
                seconds=self._timed.seconds,
                stage=self._stage,
                figures=figures,
            )
        )


class Checkpointing(keras.callbacks.Callback):
    """Restores the latest checkpoint, and writes others after some time."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        rounds: Rounds,
        reports: Reports,
        timed: TimeOfSteps,
        best: BestEpoch | None,
    ) -> None:
        super().__init__()
        self._checkpoints, self._rounds = checkpoints, rounds
        self._reports, self._timed, self._best = reports, timed, best
        self._latest = checkpoints.read()
        self.first_step = 0 if self._latest is None else self._latest.step

    def on_train_begin(self, logs: Logs = None) -> None:
        if self._latest is None:
            return
        state, arrays = self._latest.state, self._latest.arrays
        assign(self.model, arrays)
        self._reports.saved_step = self._latest.step
        self._reports.losses = list(state["losses"])
        self._timed.resume(state["seconds"])
        if self._best is not None and state["best"] is not None:
            self._best.epoch, self._best.val_nll = state["best"]
            self._best.weights = [
                array
                for name, array in arrays.items()
                if name.startswith(_OF_BEST_EPOCH)
            ]
        self._latest = None

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        is_last = batch + 1 >= self._rounds.steps_per_round
        if not is_last and self._checkpoints.due:
            self.write()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if self._checkpoints.due and not self.model.stop_training:
            self.write()

    def write(self) -> None:
        """Writes a checkpoint."""
        step = _step(self.model)
        arrays = named_arrays(self.model)
        best = self._best
        if best is not None:
            for number, weight in enumerate(best.weights):
                arrays[f"{_OF_BEST_EPOCH}{number}"] = weight
        state = {
            "seconds": self._timed.seconds,
            "losses": self._reports.losses,
            "best": [best.epoch, best.val_nll] if best and best.epoch else None,
        }
        self._checkpoints.write(step, state, arrays)
        self._reports.saved_step = step


class StopRequests(keras.callbacks.Callback):
    """Interrupts a training, after a checkpoint, when it is asked to stop."""

    def __init__(
        self,
        should_stop: Callable[[], bool],
        checkpointing: Checkpointing | None,
        steps: int,
    ) -> None:
        super().__init__()
        self._should_stop = should_stop
        self._checkpointing, self._steps = checkpointing, steps

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        if not self._should_stop():
            return
        if self._checkpointing is not None:
            self._checkpointing.write()
        step = _step(self.model)
        raise Interrupted(f"Training stopped after {step} of {self._steps} steps.")


def _completed_epochs(model: keras.Model, rounds: Rounds) -> int:
    return _step(model) // rounds.steps_per_epoch


def _step(model: keras.Model) -> int:
    return int(model.optimizer.iterations.numpy())
