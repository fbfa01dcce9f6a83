"""A callback that applies a schedule to the layers of a model during training."""

import statistics
from collections.abc import Mapping

import keras

from tfbbb.bayes.kl_schedules.schedules import Constant, KLSchedule


class ScheduleCallback(keras.callbacks.Callback):
    """Sets `kl_weight = T/N` of a `BayesianModel` in each step and around validation.

    Validation inside `fit` uses the schedule's target temperature (1 for a warm-up or
    Blundell's schedule), so that early stopping can compare the `val_loss` of epochs.
    After training, the layers keep it, so that `evaluate` agrees with that validation.
    """

    def __init__(self, schedule: KLSchedule):
        super().__init__()
        self.schedule = schedule
        self._epoch = 0
        self._num_rows = 0.0
        self._assigned: float | None = None
        self._step_temperature = 1.0
        self._temperatures: list[float] = []

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        self._check_batches()
        # N is unknown where every layer has its own `kl_weight`.
        self._num_rows = self.model.num_rows or 0.0
        self._assigned = None
        layers = self.model.variational_layers
        follows = any(layer.kl_weight_is_automatic for layer in layers)
        if layers and not follows and not isinstance(self.schedule, Constant):
            raise ValueError(
                "A schedule sets the weights of the layers that were made without a "
                "`kl_weight`, and every layer has one of its own. Make the layers "
                "without `kl_weight`, or leave `kl_schedule` out. "
                f"Received: kl_schedule={self.schedule!r}"
            )

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self._epoch = epoch
        self._temperatures = []
        if not self.schedule.varies_within_epoch:
            self._begin_step(0)

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, float] | None = None
    ) -> None:
        if self.schedule.varies_within_epoch:
            self._begin_step(batch)

    def on_test_begin(self, logs: dict[str, float] | None = None) -> None:
        self._assign(self.schedule.target_temperature(self._num_rows))

    def on_test_end(self, logs: dict[str, float] | None = None) -> None:
        self._assign(self._step_temperature)

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        if logs is not None:
            logs.update(self._reported(statistics.fmean(self._temperatures)))

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        self._assign(self.schedule.target_temperature(self._num_rows))

    def _begin_step(self, batch: int) -> None:
        self._step_temperature = self.schedule.temperature(
            self._epoch, batch, self._num_batches, self._num_rows
        )
        self._temperatures.append(self._step_temperature)
        self._assign(self._step_temperature)

    def _assign(self, temperature: float) -> None:
        if temperature != self._assigned:
            self.model.assign_temperature(temperature)
            self._assigned = temperature

    def _reported(self, temperature: float) -> Mapping[str, float]:
        """Returns the temperatures of an epoch, by name where layers have their own."""
        followed, own = {}, {}
        for layer in self.model.variational_layers:
            if layer.kl_weight_is_automatic:
                followed["temperature"] = temperature
            elif self._num_rows:
                weight = float(layer.kl_weight.numpy())
                own[f"temperature_{layer.name}"] = self._num_rows * weight
        if not followed and len(set(own.values())) == 1:
            return {"temperature": next(iter(own.values()))}
        return followed | own

    @property
    def _num_batches(self) -> int | None:
        return (self.params or {}).get("steps")

    def _check_batches(self) -> None:
        if not self.schedule.varies_within_epoch:
            return
        together = self.model.steps_per_execution
        if together != 1:
            remedy = "Compile with `steps_per_execution=1`"
        elif self._num_batches is None:
            remedy = (
                "Pass `steps_per_epoch` to `fit`, set the length of the dataset with "
                "`tf.data.experimental.assert_cardinality`"
            )
        else:
            return
        raise ValueError(
            "This KL schedule changes from batch to batch, and needs a call of Keras "
            f"before each, and their number. {remedy}, or use a schedule that changes "
            "by epoch, e.g. `LinearWarmup(epochs, each_batch=False)`. "
            f"Received: kl_schedule={self.schedule!r}, {self._num_batches} batches, "
            f"steps_per_execution={together}"
        )
