"""The schedules of the divergence's weight, by the names of `tfbbb.kl_schedules`."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from tfbbb.training.spec.part import Flag, NamedPart, PositiveNumber, from_name

KLScheduleName = Literal[
    "blundell", "constant", "from_effective_size", "linear_warmup", "tempered"
]


class ConstantSchedule(NamedPart):
    """Temperature 1 throughout, Bayes' rule: the default."""

    name: Literal["constant"] = "constant"


class TemperedSchedule(NamedPart):
    """Another temperature: below 1 the data count for more than their number."""

    name: Literal["tempered"] = "tempered"
    temperature: Annotated[PositiveNumber, Field(le=1e6, examples=[0.3])]


class LinearWarmupSchedule(NamedPart):
    """From temperature 0 to 1 over the first epochs."""

    name: Literal["linear_warmup"] = "linear_warmup"
    epochs: Annotated[
        PositiveNumber, Field(description="Length of the rise; need not be whole.")
    ] = 10
    each_batch: Annotated[
        Flag, Field(description="Whether it rises by batch, not by epoch.")
    ] = True


class BlundellSchedule(NamedPart):
    """Half the weight from batch to batch of an epoch (Blundell et al. 2015)."""

    name: Literal["blundell"] = "blundell"


class FromEffectiveSizeSchedule(NamedPart):
    """The posterior that another number of rows would give."""

    name: Literal["from_effective_size"] = "from_effective_size"
    n: Annotated[PositiveNumber, Field(description="What the rows are to count as.")]


_KLSchedule = Annotated[
    ConstantSchedule
    | TemperedSchedule
    | LinearWarmupSchedule
    | BlundellSchedule
    | FromEffectiveSizeSchedule,
    Field(discriminator="name"),
]
KLSchedule = Annotated[
    _KLSchedule,
    BeforeValidator(from_name, json_schema_input_type=KLScheduleName | _KLSchedule),
]
