"""Training of a table's model by `fit`, which can stop and continue."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras.optimizers.schedules import LearningRateSchedule

from tfbbb.base.numbers import positive_integer
from tfbbb.base.private_apis import gradients_freed_with_graphs, without_symbolic_build
from tfbbb.base.types import Options, Structure
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.training_rows import TrainingRows
from tfbbb.tables.memory_rows import MemoryRows
from tfbbb.training.callbacks import (
    BestEpoch,
    Checkpointing,
    DecayInTime,
    FiniteSteps,
    Reports,
    StopRequests,
    TimeOfSteps,
)
from tfbbb.training.checkpoint import Checkpoints, training_fingerprint
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.progress import Progress
from tfbbb.training.rounds import Rounds
from tfbbb.training.spec.training import EarlyStopping

_HELD_OUT_ROWS_AT_ONCE = 4096
HeldOut = tuple[Structure, np.ndarray] | tuple[Structure, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Outcome:
    """How a training ended: steps, completed epochs, and the epoch of the weights.

    The losses are those at the end of each round, means over its steps.
    """

    step: int
    epoch: int
    best_epoch: int
    seconds: float = field(default=0.0, compare=False)
    out_of_time: bool = False
    losses: tuple[float, ...] = field(default=(), compare=False)


def fit(
    model: BayesianModel,
    rows: MemoryRows,
    *,
    epochs: int,
    batch_size: int,
    seed: int = 0,
    member_rows: MemberRows | None = None,
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

    The learning rate follows the optimizer's own schedule, the weight of the KL
    divergence the `kl_schedule` that the model was compiled with. `seconds_left` says
    how long steps may take yet.
    """
    positive_integer("epochs", epochs)
    positive_integer("batch_size", batch_size)
    if early_stopping is not None and held_out is None:
        raise ValueError(
            "Early stopping needs held-out rows: pass `held_out`. "
            f"Received: early_stopping={early_stopping!r}, held_out=None"
        )
    steps_per_epoch = -(-rows.num_rows // batch_size)
    rounds = Rounds.plan(model, epochs, steps_per_epoch, batch_size, early_stopping)
    # One step that is not finite makes the mean loss not finite.
    finite = FiniteSteps(float(model.optimizer.learning_rate.numpy()))
    time = TimeOfSteps(seconds_left)
    reports = Reports(rounds, time, stage, report)
    best = None if early_stopping is None else BestEpoch(early_stopping, rounds)
    checkpointing = None
    first = 0
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
        checkpointing = Checkpointing(checkpoints, rounds, reports, time, best)
        first = checkpointing.first_step
    parts: list[keras.callbacks.Callback | None] = [
        finite,
        time,
        best,
        reports,
        checkpointing,
    ]
    callbacks = [part for part in parts if part is not None]
    callbacks.append(StopRequests(should_stop, checkpointing, rounds.steps))
    epoch, batch = divmod(first, steps_per_epoch)
    options: Options = {}
    if held_out is not None:
        blocks = tf.data.Dataset.from_tensor_slices(held_out)
        options = {"validation_data": blocks.batch(_HELD_OUT_ROWS_AT_ONCE)}
    if decay is not None and math.isfinite(seconds_left()):
        time.decay = DecayInTime(decay, rounds.steps)
    with _set_up(model, rounds, time.decay, xla):
        model.fit_rows(
            _training_rows(rows, member_rows),
            rows.batches(batch_size, seed=seed, epoch=epoch, batch=batch),
            epochs=rounds.number,
            initial_epoch=first // rounds.steps_per_round,
            steps_per_epoch=rounds.steps_per_round,
            callbacks=callbacks,
            verbose=0,
            shuffle=False,
            **options,
        )
    step = int(model.optimizer.iterations.numpy())
    epoch = step // steps_per_epoch
    best_epoch = best.restore() if best else None
    return Outcome(
        step=step,
        epoch=epoch,
        best_epoch=best_epoch or epoch,
        seconds=time.seconds,
        out_of_time=time.is_over,
        losses=tuple(reports.losses),
    )


@contextmanager
def _set_up(
    model: BayesianModel, rounds: Rounds, decay: DecayInTime | None, xla: bool
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
        with gradients_freed_with_graphs(), without_symbolic_build(model):
            yield
    finally:
        model.steps_per_execution = 1
        model.train_function = model.test_function = None
        if xla:
            del model.train_step
        if decay is not None:
            model.optimizer.learning_rate = decay.by_steps


def _training_rows(rows: MemoryRows, members: MemberRows | None) -> TrainingRows:
    if members is None:
        return TrainingRows(rows.targets(), rows.num_rows)
    return TrainingRows(
        rows.targets(),
        members.total_weight(rows.num_rows),
        member_sizes=members.sizes,
        member_temperatures=members.relative_temperatures,
        mean_weights=members.mean_weights,
    )
