"""A callback that applies a schedule to the layers of a model during training."""

import math
import statistics

import keras

from tfbbb.bayes.kl_schedules.kl_schedule import KLSchedule
from tfbbb.bayes.kl_schedules.schedules import Constant
from tfbbb.bayes.kl_schedules.training_temperature import TrainingTemperature


class ScheduleCallback(keras.callbacks.Callback):
    """Sets the `TrainingTemperature` before each step, and around validation.

    N is the model's `num_rows`. The logs report the mean temperature of an epoch as
    `temperature`, and that of each layer with a `kl_weight` of its own by its name: see
    `TrainingTemperature.described`.

    Validation inside `fit` uses the schedule's target temperature (1 for a warm-up or
    Blundell's schedule), so that early stopping can compare the `val_loss` of epochs.
    `val_nll` does not contain the divergence. After training, the layers keep the
    target temperature, so that `evaluate` agrees with the validation of `fit`.

    Args:
        schedule: The schedule.

    Raises:
        ValueError: When training begins: the schedule varies within an epoch, but Keras
            runs several batches per execution or does not know the number of batches;
            or no layer follows a schedule that is not constant.
    """

    def __init__(self, schedule: KLSchedule):
        super().__init__()
        self.schedule = schedule
        self._epoch = 0
        self._temperature: TrainingTemperature
        self._assigned: float | None = None
        self._step_temperature = 1.0
        self._temperatures: list[float] = []

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        self._check_batches()
        self._temperature = TrainingTemperature(
            self.model.variational_layers,
            self.schedule,
            # N is unknown where every layer has its own `kl_weight`.
            self.model.num_rows or math.nan,
        )
        self._assigned = None
        if self._temperature.sets_nothing and not isinstance(self.schedule, Constant):
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
        self._assign(self._temperature.target)

    def on_test_end(self, logs: dict[str, float] | None = None) -> None:
        self._assign(self._step_temperature)

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        if logs is not None:
            mean = statistics.fmean(self._temperatures)
            logs.update(self._temperature.described(mean))

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        self._assign(self._temperature.target)

    def _begin_step(self, batch: int) -> None:
        self._step_temperature = self._temperature.of_step(
            self._epoch, batch, self._num_batches
        )
        self._temperatures.append(self._step_temperature)
        self._assign(self._step_temperature)

    def _assign(self, temperature: float) -> None:
        if temperature != self._assigned:
            self._temperature.assign(temperature)
            self._assigned = temperature

    @property
    def _num_batches(self) -> int | None:
        return (self.params or {}).get("steps")

    def _check_batches(self) -> None:
        if not self.schedule.varies_within_epoch:
            return
        if self.model.steps_per_execution != 1:
            raise ValueError(
                "This KL schedule changes from batch to batch, but Keras calls no "
                "callback between the batches of one execution. Compile with "
                "`steps_per_execution=1`, or use a schedule that changes by epoch, "
                "e.g. `LinearWarmup(epochs, each_batch=False)`. "
                f"Received: kl_schedule={self.schedule!r}, "
                f"steps_per_execution={self.model.steps_per_execution}"
            )
        if self._num_batches is None:
            raise ValueError(
                "This KL schedule changes from batch to batch and needs the number of "
                "batches per epoch. Pass `steps_per_epoch` to `fit`, set the length of "
                "the dataset with `tf.data.experimental.assert_cardinality`, or use a "
                "schedule that changes by epoch, e.g. "
                "`LinearWarmup(epochs, each_batch=False)`. "
                f"Received: kl_schedule={self.schedule!r}, an unknown number of batches"
            )
