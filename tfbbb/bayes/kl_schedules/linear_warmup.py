"""A schedule that raises the temperature linearly from 0 to 1."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tfbbb.base.numbers import positive_number
from tfbbb.bayes.families.arguments import Flag, PositiveNumber
from tfbbb.bayes.kl_schedules.kl_schedule import KLSchedule, check_num_batches, register

Epochs = Annotated[
    PositiveNumber, Field(description="Epochs until temperature 1; may be fractional.")
]
EachBatch = Annotated[
    Flag, Field(description="Whether it rises at each batch, not at each epoch.")
]


@register("linear_warmup", "Raises the temperature from 0 to 1 over the first epochs.")
class LinearWarmup(KLSchedule):
    """Raises the temperature from 0 to 1 over the first epochs (Bowman et al. 2016).

    Batch b of M in epoch e, both counted from 0, has

        T = min(1, (e + b/M) / epochs)

    So the first step of a `fit` has T = 0, and the first step after `epochs` epochs has
    T = 1. Without a warm-up, the divergence can pull units back to the prior before
    they have learned from the data (Sønderby et al. 2016).

    Example:

    >>> import tfbbb
    >>> schedule = tfbbb.kl_schedules.LinearWarmup(epochs=10)
    >>> [schedule.temperature(epoch, 1, num_batches=2, num_rows=80)
    ...  for epoch in (0, 4, 20)]
    [0.05, 0.45, 1.0]

    Args:
        epochs: Length of the warm-up in epochs, positive; may be a fraction.
        each_batch: Whether the temperature rises with every batch. If False, an epoch
            keeps the temperature of its first batch. Pass False if `fit` runs several
            batches per execution or does not know the number of batches.
    """

    def __init__(self, epochs: Epochs = 10, each_batch: EachBatch = True):
        self.epochs = positive_number("epochs", epochs)
        if not isinstance(each_batch, bool):
            raise ValueError(
                "`each_batch` must be True or False. "
                f"Received: each_batch={each_batch!r}"
            )
        self.each_batch = each_batch
        self.varies_within_epoch = self.each_batch

    @property
    def warmup_epochs(self) -> float:
        return self.epochs

    def temperature(
        self, epoch: int, batch: int, num_batches: int | None, num_rows: float
    ) -> float:
        share = (
            batch / check_num_batches(batch, num_batches) if self.each_batch else 0.0
        )
        return min(1.0, (epoch + share) / self.epochs)

    def has_settled(self, epoch: int) -> bool:
        return epoch >= self.epochs
