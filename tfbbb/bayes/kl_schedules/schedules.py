"""Schedules of the weight of the KL divergence: a temperature for each step."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from tfbbb.base.numbers import positive_number
from tfbbb.base.strategy import Registry, Strategy, saved_as
from tfbbb.base.types import Config
from tfbbb.bayes.families.arguments import Flag, PositiveNumber


class KLSchedule(Strategy):
    """The temperature T of the posterior in each step of a `fit` on N rows.

    The loss of a step is

        (1/B) sum_i -log p(y_i | x_i, w) + (T/N) KL(q(w) || p(w))

    so T = 1 gives the evidence lower bound. T < 1 gives a "cold" posterior, which
    weights the data more than their number justifies (Wenzel et al. 2020).

    Attributes:
        varies_within_epoch: Whether steps of one epoch have different temperatures.
        warmup_epochs: Number of epochs before the divergence has its full weight.
        counts_rows_once: Whether training ends at temperature 1, so that Bayes' rule
            holds.
    """

    varies_within_epoch: bool = False
    warmup_epochs: float = 0.0
    counts_rows_once: bool = True

    def temperature(
        self, epoch: int, batch: int, num_batches: int | None, num_rows: float
    ) -> float:
        """Returns the temperature T of a step, by default that of the final objective.

        Epochs and batches count from 0, and N is the sum of the weights of rows. Only
        schedules that vary within an epoch need the number M of its batches.
        """
        return self.target_temperature(num_rows)

    def target_temperature(self, num_rows: float) -> float:
        """Returns the temperature of the final objective, at which validation is."""
        return 1.0

    def has_settled(self, epoch: int) -> bool:
        """Whether an epoch and all after it have the target temperature, on average."""
        return epoch >= self.warmup_epochs


registry = Registry(KLSchedule, package="tfbbb.kl_schedules")
register = registry.register


@register("constant", "Temperature 1 throughout, Bayes' rule: the default.")
class Constant(KLSchedule):
    """Temperature 1 throughout: `kl_weight = 1/N` at every step.

    Example:

    >>> import tfbbb
    >>> tfbbb.kl_schedules.Constant().temperature(3, 0, num_batches=10, num_rows=80)
    1.0
    """


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
        self.counts_rows_once = self._temperature == 1

    def get_config(self) -> Config:
        return {"temperature": self._temperature}

    def target_temperature(self, num_rows: float) -> float:
        return float(self._temperature)


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
        self.epochs = self.warmup_epochs = positive_number("epochs", epochs)
        self.each_batch = self.varies_within_epoch = each_batch

    def temperature(
        self, epoch: int, batch: int, num_batches: int | None, num_rows: float
    ) -> float:
        share = batch / _known(batch, num_batches) if self.each_batch else 0.0
        return min(1.0, (epoch + share) / self.epochs)


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

    Over an epoch the weights add up to the same sum as `kl_weight = 1/N`.

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
        num_batches = _known(batch, num_batches)
        share = math.ldexp(1.0, -(batch + 1)) / -math.expm1(-num_batches * math.log(2))
        return num_batches * share


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

    counts_rows_once = False

    def __init__(self, n: Rows):
        self.n = positive_number("n", n)

    def target_temperature(self, num_rows: float) -> float:
        return num_rows / self.n


# Colder posteriors of trained networks predict no better. A network for images that
# starts untrained is less sure than it is right at N / P: see `docs/keras.md`.
_COLDEST, _SHARE = 0.03, 0.3


@saved_as("tfbbb.kl_schedules")
class RowsPerWeight(KLSchedule):
    """The temperature 0.3 N / P of N rows and P weights, from 0.03 to 1.

        T = min(1, max(0.03, 0.3 N / P))

    With more weights than rows the divergences outweigh the data at T = 1. At this T
    the loss of a row holds 0.3 times the mean divergence of a weight, whatever N and P
    are. `tfbbb.convert` chooses it, for networks that the data have determined.

    Example:

    >>> import tfbbb
    >>> schedule = tfbbb.kl_schedules.RowsPerWeight(800)
    >>> [schedule.temperature(0, 0, num_batches=10, num_rows=n) for n in (8, 800, 8000)]
    [0.03, 0.3, 1.0]

    Args:
        num_weights: The number P of weights with a posterior, positive.
    """

    counts_rows_once = False

    def __init__(self, num_weights: float):
        self.num_weights = positive_number("num_weights", num_weights)

    def target_temperature(self, num_rows: float) -> float:
        return min(1.0, max(_COLDEST, _SHARE * num_rows / self.num_weights))


def _known(batch: int, num_batches: int | None) -> int:
    if num_batches is None or not 0 <= batch < num_batches:
        raise ValueError(
            "A schedule that varies within an epoch needs the number of batches per "
            "epoch, and a batch index below that number. "
            f"Received: batch={batch}, num_batches={num_batches}"
        )
    return num_batches
