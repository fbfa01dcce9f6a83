"""Trains one posterior on training rows in partitions."""

import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from tfbbb.base.types import Json
from tfbbb.lab.distributed import PartitionedVI
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.training.candidates import Candidate
from tfbbb.training.loop import Outcome
from tfbbb.training.plan import TrainingPlan
from tfbbb.training.preparation import Prepared
from tfbbb.training.progress import Interrupted, Progress
from tfbbb.training.spec import SpecError
from tfbbb.training.spec.training import TrainingSpec

# Rounds of a training whose epochs are enough for an epoch in each.
_ROUNDS = 30


def train_in_partitions(
    model: BayesianModel,
    plan: TrainingPlan,
    prepared: Prepared,
    training: TrainingSpec,
    *,
    part_rows: Sequence[int],
    max_seconds: float,
    ray_address: str | None,
    report: Callable[[Progress], object],
    should_stop: Callable[[], bool],
) -> tuple[Candidate, dict[str, Json]]:
    """Trains the network of a plan by partitioned variational inference.

    The epochs of the plan are divided among the rounds of `PartitionedVI`. Nothing is
    saved between rounds: a training that was interrupted starts again, and in one
    process it has the same result.
    """
    number = training.partitions
    assert number is not None
    ((name, network),) = plan.networks.items()
    places, by = _divide(prepared.training_rows, number, part_rows, training.seed)
    epochs = max(1, round(plan.epochs / _ROUNDS))
    rounds = math.ceil(plan.epochs / epochs)
    began = at_round = time.monotonic()
    out_of_time = False

    def after_round(done: int, change: float) -> bool:
        nonlocal out_of_time, at_round
        now = time.monotonic()
        report(
            Progress(
                epoch=done * epochs,
                epochs=rounds * epochs,
                step=done * epochs * plan.steps_per_epoch,
                steps=rounds * epochs * plan.steps_per_epoch,
                seconds=now - began,
                stage=f"training in {number} partitions, divided by {by}",
                figures={"change": change},
            )
        )
        if should_stop():
            raise Interrupted(f"Training stopped after {done} of {rounds} rounds.")
        # Another round takes as long as this one.
        out_of_time = done < rounds and 2 * now - at_round - began > max_seconds
        at_round = now
        return out_of_time

    assert plan.learning_rate.initial is not None
    method = PartitionedVI(
        rounds=rounds,
        epochs=epochs,
        batch_size=plan.batch_size,
        learning_rate=plan.learning_rate.initial,
        ray_address=ray_address,
        seed=training.seed,
    )
    sources = [prepared.rows.at(own) for own in places]
    fitted = method.fit(model, sources, verbose=0, should_stop=after_round)
    found = fitted.diagnostics
    passes = found["rounds"] * epochs
    outcome = Outcome(
        step=passes * plan.steps_per_epoch,
        epoch=passes,
        best_epoch=passes,
        seconds=time.monotonic() - began,
        out_of_time=out_of_time,
    )
    description = {
        "number": number,
        "by": by,
        "rows": [len(own) for own in places],
        "rounds": found["rounds"],
        "change": found["changes"][-1],
        "bytes_sent": found["bytes_sent"],
    }
    return Candidate(name, network, fitted, None, outcome), description


def _divide(
    training_rows: np.ndarray, number: int, part_rows: Sequence[int], seed: int
) -> tuple[list[np.ndarray], str]:
    """Returns the training rows of each partition, and what divided them."""
    num_rows = len(training_rows)
    if len(part_rows) != number:
        if num_rows < number:
            raise SpecError(
                "Each partition needs a training row: use fewer `partitions`. "
                f"Received: {number} partitions of {num_rows} rows"
            )
        order = np.random.default_rng([seed, num_rows]).permutation(num_rows)
        return [np.sort(own) for own in np.array_split(order, number)], "chance"
    file = np.searchsorted(np.cumsum(part_rows), training_rows, side="right")
    places = [np.flatnonzero(file == index) for index in range(number)]
    for index, own in enumerate(places):
        if not len(own):
            raise SpecError(
                "Each partition needs a training row, but the file "
                f"{index + 1} of {number} has none: leave the file out, or use another "
                "number of `partitions`."
            )
    return places, "file"
