"""The recalibrations by the names of `tfbbb.recalibration`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from tfbbb.base.task import Task

By = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=10_000,
        description="A feature whose values tell groups apart. Each group with 20 "
        "held-out rows gets conformal intervals or sets of its own.",
        examples=["region"],
    ),
]


class RecalibrationFamily:
    """Declares a recalibration, without TensorFlow.

    The fields of a subclass are its arguments.

    Attributes:
        task: The kind of prediction that it suits; None for both.
    """

    task: ClassVar[Task | None] = None


@dataclass(frozen=True)
class AutoRecalibration(RecalibrationFamily):
    """What helps on held-out rows that it was not fitted to: the default."""

    by: By = None


@dataclass(frozen=True)
class TemperatureRecalibration(RecalibrationFamily):
    """Divides the logits of classes by one number."""

    task = "classification"


@dataclass(frozen=True)
class PlattRecalibration(RecalibrationFamily):
    """Multiplies the logits of classes by one number, and shifts each."""

    task = "classification"


@dataclass(frozen=True)
class VectorScalingRecalibration(RecalibrationFamily):
    """Multiplies and shifts the logit of each class."""

    task = "classification"


@dataclass(frozen=True)
class VarianceScalingRecalibration(RecalibrationFamily):
    """Scales the spread of real numbers."""

    task = "regression"


@dataclass(frozen=True)
class IsotonicPITRecalibration(RecalibrationFamily):
    """Maps the distribution function of a number."""

    task = "regression"


@dataclass(frozen=True)
class ConformalIntervalsRecalibration(RecalibrationFamily):
    """Intervals of numbers with guaranteed coverage."""

    density: Annotated[
        Literal["variance_scaling", "isotonic_pit"] | None,
        Field(description="The recalibration of the density beneath the intervals."),
    ] = None
    by: By = None
    task = "regression"


@dataclass(frozen=True)
class ConformalSetsRecalibration(RecalibrationFamily):
    """Sets of classes with guaranteed coverage."""

    density: Annotated[
        Literal["temperature", "platt", "vector_scaling"] | None,
        Field(description="The recalibration of the probabilities beneath the sets."),
    ] = None
    by: By = None
    task = "classification"


RECALIBRATIONS: dict[str, type[RecalibrationFamily]] = {
    "auto": AutoRecalibration,
    "conformal_intervals": ConformalIntervalsRecalibration,
    "conformal_sets": ConformalSetsRecalibration,
    "isotonic_pit": IsotonicPITRecalibration,
    "platt": PlattRecalibration,
    "temperature": TemperatureRecalibration,
    "variance_scaling": VarianceScalingRecalibration,
    "vector_scaling": VectorScalingRecalibration,
}
