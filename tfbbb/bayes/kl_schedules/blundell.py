"""A schedule with most of the divergence in the first batches of each epoch."""

from __future__ import annotations

import math

from tfbbb.bayes.kl_schedules.kl_schedule import KLSchedule, check_num_batches, register


@register(
    "blundell",
    "Halves the weight from batch to batch of an epoch (Blundell et al. 2015).",
)
class Blundell(KLSchedule):
    """Halves the weight of the divergence from batch to batch of an epoch.

    Blundell et al. (2015, section 3.4) give batch i = 1..M the share
    `2^(M-i) / (2^M - 1)` of the divergence of an epoch. With a loss that is a mean over
    rows, this is

        kl_weight_i = (M/N) 2^-i / (1 - 2^-M),   T_i = M 2^-i / (1 - 2^-M)

    Over an epoch the weights add up to the same sum as `kl_weight = 1/N`. The
    computation does not overflow for any M: late in an epoch the share underflows to 0.

    Example:

    >>> import tfbbb
    >>> schedule = tfbbb.kl_schedules.Blundell()
    >>> [schedule.temperature(0, batch, num_batches=3, num_rows=80)
    ...  for batch in range(3)]
    [1.714286, 0.857143, 0.428571]
    """

    varies_within_epoch = True

    def temperature(
        self, epoch: int, batch: int, num_batches: int | None, num_rows: float
    ) -> float:
        num_batches = check_num_batches(batch, num_batches)
        share = math.ldexp(1.0, -(batch + 1)) / -math.expm1(-num_batches * math.log(2))
        return num_batches * share
