"""The rounds of a training: the epochs of Keras' `fit`, each of whole executions."""

from dataclasses import dataclass
from math import ceil
from typing import Self

from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.training.spec.training import EarlyStopping

_MOST_ROUNDS, _FEWEST_ROUNDS = 200, 50
_VALIDATIONS_TO_STOP = 50
# Calls from Python then cost next to nothing, and a training still stops soon.
_SECONDS_PER_EXECUTION = 0.2
# Of training steps, as measured on two cores.
_SECONDS_PER_STEP, _OPERATIONS_PER_ROW, _OPERATIONS_PER_SECOND = 0.002, 6, 3e10


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
        seconds, settled = (
            seconds_per_step(model, batch_size),
            model.kl_schedule.has_settled(0),
        )
        at_once = max(1, int(_SECONDS_PER_EXECUTION / seconds)) if settled else 1
        passes = ceil(epochs / _MOST_ROUNDS)
        if early_stopping is not None:
            passes = ceil(epochs / _VALIDATIONS_TO_STOP)
        elif settled:
            in_execution = min(at_once // steps_per_epoch, epochs // _FEWEST_ROUNDS)
            passes = max(passes, in_execution)
        number = ceil(epochs / passes)
        executions = ceil(passes * steps_per_epoch / at_once)
        return cls(
            epochs=epochs,
            steps_per_epoch=steps_per_epoch,
            number=number,
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


def seconds_per_step(model: BayesianModel, batch_size: int) -> float:
    """Returns about the seconds of a step on a processor of speed 1.

    A step multiplies each parameter with each row a few times.
    """
    operations = _OPERATIONS_PER_ROW * batch_size * model.count_params()
    return _SECONDS_PER_STEP + operations / _OPERATIONS_PER_SECOND
