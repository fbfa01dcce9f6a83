"""A schedule with one temperature in every step."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tfbbb.base.numbers import positive_number
from tfbbb.base.types import Config
from tfbbb.bayes.families.arguments import PositiveNumber
from tfbbb.bayes.kl_schedules.kl_schedule import KLSchedule, register

Temperature = Annotated[PositiveNumber, Field(le=1e6, examples=[0.3])]


@register("tempered", "A constant temperature; below 1, rows count more than once.")
class Tempered(KLSchedule):
    """A fixed temperature T: `kl_weight = T/N` at every step.

    T < 1 gives a cold posterior, which often predicts better than T = 1 if the prior or
    the family of q fits badly (Wenzel et al. 2020). T > 1 regularises more.

    Example:

    >>> import tfbbb
    >>> schedule = tfbbb.kl_schedules.Tempered(0.3)
    >>> schedule.temperature(0, 0, num_batches=10, num_rows=80)
    0.3

    Args:
        temperature: T, positive and finite.
    """

    def __init__(self, temperature: Temperature):
        self._temperature = positive_number("temperature", temperature)

    def get_config(self) -> Config:
        return {"temperature": self._temperature}

    @property
    def counts_rows_once(self) -> bool:
        return self._temperature == 1

    def temperature(
        self, epoch: int, batch: int, num_batches: int | None, num_rows: float
    ) -> float:
        return float(self._temperature)

    def target_temperature(self, num_rows: float) -> float:
        return float(self._temperature)
