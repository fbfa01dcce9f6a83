"""Runs many training steps in one execution of a graph."""

import functools
import time
from collections.abc import Callable, Iterator

import tensorflow as tf

from tfbbb.base.private_apis import free_gradients_with
from tfbbb.base.types import Structure
from tfbbb.bayes.kl_schedules.training_temperature import TrainingTemperature
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.training.devices import run_on_replicas

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

    Attributes:
        use_xla: Whether XLA compiles the steps, for one size of batch after the other.
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
        self.use_xla = False
        # XLA cannot compile iterators, so it compiles each step within the loop.
        compiled = tf.function(
            model.train_step,
            input_signature=[batches.element_spec],
            autograph=False,
            jit_compile=True,
        )
        self._executions = {
            False: self._execution(model.train_step, batches),
            True: self._execution(compiled, batches),
        }
        self._at_once = 1

    def _execution(
        self, train_step: Callable[[Structure], object], batches: tf.data.Dataset
    ) -> "tf.types.experimental.PolymorphicFunction":
        return tf.function(
            functools.partial(self._steps, train_step),
            # As an argument: a graph would keep an iterator that it captures.
            input_signature=[
                tf.TensorSpec([None], tf.float32),
                tf.data.IteratorSpec(batches.element_spec),
            ],
            autograph=False,
        )

    def __enter__(self) -> "Steps":
        return self

    def __exit__(self, *error: object) -> None:
        del self._batches
        for execute in self._executions.values():
            if execute.experimental_get_tracing_count():
                free_gradients_with(execute.get_concrete_function().graph)

    def restart(self, batches: tf.data.Dataset) -> None:
        """Continues with the batches of an equal dataset, from its first on."""
        self._batches = iter(batches)

    def take(self, first: int, end: int) -> int:
        """Takes steps from `first` on, at most up to `end`."""
        last = min(end, first + self._at_once)
        weights = [self._kl_weight(step) for step in range(first, last)]
        began = time.perf_counter()
        execute = self._executions[self.use_xla]
        execute(tf.constant(weights, tf.float32), self._batches)
        # A GPU may still compute when the call returns.
        tf.test.experimental.sync_devices()
        seconds = (time.perf_counter() - began) / (last - first)
        wanted = int(_SECONDS_PER_EXECUTION / seconds)
        self._at_once = min(max(1, wanted), _MOST_STEPS_PER_EXECUTION)
        return last

    def _kl_weight(self, step: int) -> float:
        epoch, batch = divmod(step, self._steps_per_epoch)
        temperature = self._temperature.of_step(epoch, batch, self._steps_per_epoch)
        return self._temperature.kl_weight(temperature)

    def _steps(
        self,
        train_step: Callable[[Structure], object],
        kl_weights: tf.Tensor,
        batches: Iterator[Structure],
    ) -> None:
        def step(index: tf.Tensor) -> tf.Tensor:
            self._temperature.assign_kl_weight(kl_weights[index])
            strategy = self._model.distribute_strategy
            run_on_replicas(strategy, train_step, next(batches))
            return index + 1

        tf.while_loop(
            lambda index: index < tf.size(kl_weights),
            step,
            [0],
            parallel_iterations=1,
        )
