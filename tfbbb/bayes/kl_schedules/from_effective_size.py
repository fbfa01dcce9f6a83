"""A schedule that weights the data as another number of rows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tfbbb.base.numbers import positive_number
from tfbbb.bayes.families.arguments import PositiveNumber
from tfbbb.bayes.kl_schedules.kl_schedule import KLSchedule, register

Rows = Annotated[
    PositiveNumber, Field(description="Number of rows for which the rows count.")
]


@register(
    "from_effective_size",
    "Tempers the posterior as if there were another number of rows.",
)
class FromEffectiveSize(KLSchedule):
    """Trains the posterior that n rows of the same kind would give, for any N.

    Weights the data by n/N (the lambda-ELBO with lambda = n/N):

        (n/N) sum_i E_q[-log p(y_i | x_i, w)] + KL(q(w) || p(w))

    This is `kl_weight = 1/n`, the temperature N/n. Choose n < N if rows repeat each
    other, such as augmented images or an oversampled series: n is the number of
    independent rows.

    Example:

    >>> import tfbbb
    >>> schedule = tfbbb.kl_schedules.FromEffectiveSize(20)
    >>> schedule.temperature(0, 0, num_batches=10, num_rows=80)
    4.0

    Args:
        n: The effective number of rows, positive and finite.
    """

    def __init__(self, n: Rows):
        self.n = positive_number("n", n)

    @property
    def counts_rows_once(self) -> bool:
        return False

    def temperature(
        self, epoch: int, batch: int, num_batches: int | None, num_rows: float
    ) -> float:
        return num_rows / self.n

    def target_temperature(self, num_rows: float) -> float:
        return num_rows / self.n
