"""Runs many training steps in one execution of a graph."""

import time
from typing import Any

import tensorflow as tf

from tfbbb.kl_schedules.training_temperature import TrainingTemperature
from tfbbb.model import BayesianModel
from tfbbb.private_apis import free_gradients_with

# Calls from Python then cost next to nothing, and a training still stops soon.
_SECONDS_PER_EXECUTION = 0.2
_MOST_STEPS_PER_EXECUTION = 5000


class Steps:
    """Takes training steps on one batch after the other.

    One execution of the graph takes as many steps as fit into about a fifth of a
    second: one step of a small network takes less time than its dispatch. The result
    does not depend on the number of steps per execution.

    Use it as a context manager: at the end it frees the iterator with its threads. Left
    to the end of the interpreter, TensorFlow may wait for these threads for ever. The
    graph is freed with the object.

    Args:
        model: The model, compiled and within `training_on`.
        batches: An endless dataset of batches of `(inputs, targets)`.
        temperature: Sets the temperature of each step.
        steps_per_epoch: Number of steps of an epoch.
    """

    def __init__(
        self,
        model: BayesianModel,
        batches: tf.data.Dataset,
        temperature: TrainingTemperature,
        steps_per_epoch: int,
    ):
        self._model = model
        self._temperature = temperature
        self._steps_per_epoch = steps_per_epoch
        self._batches = iter(batches)
        self._execute = tf.function(
            self._steps,
            # As an argument: a graph would keep an iterator that it captures.
            input_signature=[
                tf.TensorSpec([None], tf.float32),
                tf.data.IteratorSpec(batches.element_spec),
            ],
            autograph=False,
        )
        self._at_once = 1

    def __enter__(self) -> "Steps":
        return self

    def __exit__(self, *error: object) -> None:
        del self._batches
        if self._execute.experimental_get_tracing_count():
            free_gradients_with(self._execute.get_concrete_function().graph)

    def take(self, first: int, end: int) -> int:
        """Takes steps from `first` on, at most up to `end`.

        Args:
            first: Index of the next step.
            end: Index after the last step to take.

        Returns:
            The index of the next step.
        """
        last = min(end, first + self._at_once)
        weights = [self._kl_weight(step) for step in range(first, last)]
        began = time.perf_counter()
        self._execute(tf.constant(weights, tf.float32), self._batches)
        seconds = (time.perf_counter() - began) / (last - first)
        wanted = int(_SECONDS_PER_EXECUTION / seconds)
        self._at_once = min(max(1, wanted), _MOST_STEPS_PER_EXECUTION)
        return last

    def _kl_weight(self, step: int) -> float:
        epoch, batch = divmod(step, self._steps_per_epoch)
        temperature = self._temperature.of_step(epoch, batch, self._steps_per_epoch)
        return self._temperature.kl_weight(temperature)

    def _steps(self, kl_weights: Any, batches: Any) -> None:
        def step(index: Any) -> Any:
            self._temperature.assign_kl_weight(kl_weights[index])
            self._model.train_step(next(batches))
            return index + 1

        tf.while_loop(
            lambda index: index < tf.size(kl_weights),
            step,
            [0],
            parallel_iterations=1,
        )
