"""The schedules of the divergence's weight by the names of `tfbbb.kl_schedules`."""

from typing import Annotated

from pydantic import Field

from tfbbb.bayes.families.arguments import Flag, PositiveNumber


class KLScheduleFamily:
    """Declares a schedule of the divergence's weight, without TensorFlow.

    The annotations of a subclass are its arguments.
    """

    @property
    def warmup_epochs(self) -> float:
        """Number of epochs before the divergence has its full weight."""
        return 0.0

    @property
    def counts_rows_once(self) -> bool:
        """Whether training ends at temperature 1, so that Bayes' rule holds."""
        return True


class ConstantSchedule(KLScheduleFamily):
    """Temperature 1 throughout, Bayes' rule: the default."""


class TemperedSchedule(KLScheduleFamily):
    """A constant temperature; below 1, rows count more than once."""

    temperature: Annotated[PositiveNumber, Field(le=1e6, examples=[0.3])]

    @property
    def counts_rows_once(self) -> bool:
        return self.temperature == 1


class LinearWarmupSchedule(KLScheduleFamily):
    """Raises the temperature from 0 to 1 over the first epochs."""

    epochs: Annotated[
        PositiveNumber,
        Field(description="Epochs until temperature 1; may be fractional."),
    ] = 10
    each_batch: Annotated[
        Flag, Field(description="Whether it rises at each batch, not at each epoch.")
    ] = True

    @property
    def warmup_epochs(self) -> float:
        return self.epochs


class BlundellSchedule(KLScheduleFamily):
    """Halves the weight from batch to batch of an epoch (Blundell et al. 2015)."""


class FromEffectiveSizeSchedule(KLScheduleFamily):
    """Tempers the posterior as if there were another number of rows."""

    n: Annotated[
        PositiveNumber, Field(description="Number of rows for which the rows count.")
    ]
    counts_rows_once = False


KL_SCHEDULES: dict[str, type[KLScheduleFamily]] = {
    "constant": ConstantSchedule,
    "tempered": TemperedSchedule,
    "linear_warmup": LinearWarmupSchedule,
    "blundell": BlundellSchedule,
    "from_effective_size": FromEffectiveSizeSchedule,
}
