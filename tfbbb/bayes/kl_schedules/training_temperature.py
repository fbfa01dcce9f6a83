"""The temperature of the posterior while a model trains and validates."""

import math
from collections.abc import Sequence
from typing import Any

from tfbbb.bayes.kl_schedules.kl_schedule import KLSchedule


class TrainingTemperature:
    """Sets `kl_weight = T/N` in the layers without a `kl_weight` of their own.

    Layers that were given a `kl_weight` keep it.

    Args:
        layers: The variational layers of the model.
        schedule: The temperature T of each step.
        num_rows: Number N of training rows, or the sum of their weights; NaN if it is
            unknown because every layer has a `kl_weight`.
    """

    def __init__(self, layers: Sequence[Any], schedule: KLSchedule, num_rows: float):
        self._layers = [layer for layer in layers if layer.kl_weight_is_automatic]
        self._others = [x for x in layers if not x.kl_weight_is_automatic]
        self._schedule = schedule
        self._num_rows = num_rows

    def of_step(self, epoch: int, batch: int, num_batches: int | None) -> float:
        """Returns T of a step; the arguments are those of `KLSchedule.temperature`."""
        return self._schedule.temperature(epoch, batch, num_batches, self._num_rows)

    @property
    def target(self) -> float:
        """T of the final objective, at which held-out rows are evaluated."""
        return self._schedule.target_temperature(self._num_rows)

    @property
    def sets_nothing(self) -> bool:
        """Whether every layer has a `kl_weight` of its own."""
        return bool(self._others) and not self._layers

    def described(self, temperature: float) -> dict[str, float]:
        """Returns the temperatures to report, by name.

        `temperature` is that of the layers whose weights this object sets. A layer that
        was given a `kl_weight` has the temperature `temperature_NAME`. If all layers
        were given the same one, `temperature` is theirs.
        """
        found = {"temperature": temperature} if self._layers else {}
        if not self._others or math.isnan(self._num_rows):
            return found
        own = {
            f"temperature_{layer.name}": self._num_rows * float(layer.kl_weight.numpy())
            for layer in self._others
        }
        if self.sets_nothing and len(set(own.values())) == 1:
            return {"temperature": next(iter(own.values()))}
        return found | own

    def assign(self, temperature: float) -> None:
        """Sets the weights to T/N."""
        for layer in self._layers:
            layer.kl_weight.assign(temperature / self._num_rows)
