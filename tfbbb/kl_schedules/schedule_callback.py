"""What carries a schedule into the layers of a model while it trains."""

import statistics
from typing import Any

import keras

from tfbbb.kl_schedules.kl_schedule import KLSchedule


class ScheduleCallback(keras.callbacks.Callback):
    """Sets `kl_weight = T/N` in the layers that leave it to `fit`, as T changes.

    Layers that were given a `kl_weight` keep it. N is the model's `num_rows`. The mean
    temperature of an epoch is reported in the logs as `temperature`.

    Validation inside `fit` uses the schedule's target temperature (1 for a warm-up or
    Blundell's schedule), so that the `val_loss` of one epoch can be compared with that
    of another, as early stopping does. `val_nll` has no divergence in it at all. After
    training, layers have that weight too, so that `evaluate` gives what `fit` gave.

    Args:
        schedule: The schedule.

    Raises:
        ValueError: At the beginning of training, where the schedule varies from batch
            to batch and Keras runs several batches at once, or does not know how many
            there are.
    """

    def __init__(self, schedule: KLSchedule):
        super().__init__()
        self.schedule = schedule
        self._epoch = 0
        self._num_rows = 1.0
        self._layers: list[Any] = []
        self._in_force: float | None = None
        self._of_step = 1.0
        self._temperatures: list[float] = []

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._check_batches()
        self._num_rows = self.model.num_rows
        self._layers = [
            layer
            for layer in self.model.variational_layers
            if layer.kl_weight_is_automatic
        ]
        self._in_force = None

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._epoch = epoch
        self._temperatures = []
        if not self.schedule.varies_within_epoch:
            self._begin_step(0)

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        if self.schedule.varies_within_epoch:
            self._begin_step(batch)

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._assign(self.schedule.target_temperature(self._num_rows))

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        self._assign(self._of_step)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is not None:
            logs["temperature"] = statistics.fmean(self._temperatures)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._assign(self.schedule.target_temperature(self._num_rows))

    def _begin_step(self, batch: int) -> None:
        self._of_step = self.schedule.temperature(
            self._epoch, batch, self._num_batches, self._num_rows
        )
        self._temperatures.append(self._of_step)
        self._assign(self._of_step)

    def _assign(self, temperature: float) -> None:
        if temperature == self._in_force:
            return
        self._in_force = temperature
        for layer in self._layers:
            layer.kl_weight.assign(temperature / self._num_rows)

    @property
    def _num_batches(self) -> int | None:
        return (self.params or {}).get("steps")

    def _check_batches(self) -> None:
        if not self.schedule.varies_within_epoch:
            return
        if self.model.steps_per_execution != 1:
            raise ValueError(
                "This KL schedule changes from batch to batch, and Keras lets nothing "
                "in between the batches of one execution. Compile with "
                "`steps_per_execution=1`, or take a schedule that changes by epoch, "
                "e.g. `LinearWarmup(epochs, each_batch=False)`. "
                f"Received: kl_schedule={self.schedule!r}, "
                f"steps_per_execution={self.model.steps_per_execution}"
            )
        if self._num_batches is None:
            raise ValueError(
                "This KL schedule changes from batch to batch and needs to know how "
                "many an epoch has. Pass `steps_per_epoch` to `fit`, give the dataset "
                "its length with `tf.data.experimental.assert_cardinality`, or take a "
                "schedule that changes by epoch, e.g. "
                "`LinearWarmup(epochs, each_batch=False)`. "
                f"Received: kl_schedule={self.schedule!r}, an unknown number of batches"
            )
