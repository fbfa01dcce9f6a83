"""The priors of a spec, by the names of `tfbbb.priors`."""

import math
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from tfbbb.training.spec.part import (
    Flag,
    NamedPart,
    Number,
    PositiveNumber,
    from_name,
)

PriorName = Literal[
    "empirical_normal",
    "gamma_normal",
    "horseshoe",
    "laplace",
    "none",
    "normal",
    "scale_mixture_normal",
    "student_t",
]
Scale = Annotated[
    PositiveNumber | Literal["fan_in"],
    Field(description="A scale for all weights, or `fan_in` for 1/sqrt(fan_in)."),
]


class NormalPrior(NamedPart):
    """Independent normals around zero: the default."""

    name: Literal["normal"] = "normal"
    scale: Scale = "fan_in"
    trainable: Annotated[
        Flag, Field(description="Whether the scale is learned with the posterior.")
    ] = False


class LaplacePrior(NamedPart):
    """Independent Laplace distributions around zero."""

    name: Literal["laplace"] = "laplace"
    scale: Scale = "fan_in"


class StudentTPrior(NamedPart):
    """Independent Student t distributions around zero."""

    name: Literal["student_t"] = "student_t"
    df: Annotated[PositiveNumber, Field(description="Degrees of freedom.")] = 4.0
    scale: Scale = "fan_in"


class ScaleMixtureNormalPrior(NamedPart):
    """A wide and a narrow normal around zero (Blundell et al. 2015)."""

    name: Literal["scale_mixture_normal"] = "scale_mixture_normal"
    pi: Annotated[
        Number, Field(gt=0, lt=1, description="Weight of the first normal.")
    ] = 0.5
    scale1: PositiveNumber = 1.0
    scale2: PositiveNumber = math.exp(-6)


class HorseshoePrior(NamedPart):
    """Normals whose own scales are half-Cauchy: for sparse weights."""

    name: Literal["horseshoe"] = "horseshoe"
    scale: Scale = "fan_in"


class GammaNormalPrior(NamedPart):
    """Normals with one unknown precision for all weights of a tensor."""

    name: Literal["gamma_normal"] = "gamma_normal"
    shape: PositiveNumber = 6.0
    rate: PositiveNumber = 6.0


class EmpiricalNormalPrior(NamedPart):
    """A normal that follows the weights of its tensor, which are ten at least."""

    name: Literal["empirical_normal"] = "empirical_normal"
    hyperprior: Annotated[
        tuple[PositiveNumber, PositiveNumber] | None,
        Field(description="Shape and scale of an inverse-gamma of the variance."),
    ] = None


class NoPrior(NamedPart):
    """None, for the posterior `point`: maximum likelihood."""

    name: Literal["none"] = "none"


_Prior = Annotated[
    NormalPrior
    | LaplacePrior
    | StudentTPrior
    | ScaleMixtureNormalPrior
    | HorseshoePrior
    | GammaNormalPrior
    | EmpiricalNormalPrior
    | NoPrior,
    Field(discriminator="name"),
]
Prior = Annotated[
    _Prior, BeforeValidator(from_name, json_schema_input_type=PriorName | _Prior)
]
