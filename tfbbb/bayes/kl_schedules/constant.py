"""A schedule with temperature 1 in every step."""

from __future__ import annotations

from tfbbb.bayes.kl_schedules.kl_schedule import KLSchedule, register


@register("constant", "Temperature 1 throughout, Bayes' rule: the default.")
class Constant(KLSchedule):
    """Temperature 1 throughout: `kl_weight = 1/N` at every step.

    Example:

    >>> import tfbbb
    >>> tfbbb.kl_schedules.Constant().temperature(3, 0, num_batches=10, num_rows=80)
    1.0
    """

    def temperature(
        self, epoch: int, batch: int, num_batches: int | None, num_rows: float
    ) -> float:
        return 1.0
