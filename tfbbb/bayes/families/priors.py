"""The families p(w) by the names of `tfbbb.priors`."""

import math
from typing import Annotated, Literal

from pydantic import Field

from tfbbb.bayes.families.arguments import (
    Flag,
    Number,
    PositiveNumber,
)

Scale = Annotated[
    PositiveNumber | Literal["fan_in"],
    Field(description="A scale for all weights, or `fan_in` for 1/sqrt(fan_in)."),
]


class PriorFamily:
    """Declares a prior p(w), without TensorFlow.

    The annotations of a subclass are its arguments.

    Attributes:
        bounded: Whether the density has an upper bound. If not, a point estimate has no
            maximum to converge to.
    """

    bounded = True


class NormalPrior(PriorFamily):
    """Independent normals around zero: the default."""

    scale: Scale = "fan_in"
    trainable: Annotated[
        Flag, Field(description="Whether the scale is learned with the posterior.")
    ] = False


class CorrelatedNormalPrior(PriorFamily):
    """A normal around zero whose weights are correlated, with a covariance matrix."""

    correlation: Annotated[
        Annotated[Number, Field(gt=-1, lt=1)]
        | Annotated[
            tuple[Annotated[tuple[Number, ...], Field(fail_fast=True)], ...],
            Field(fail_fast=True),
        ],
        Field(
            description="The correlation of the weights of a unit, or a covariance "
            "matrix of the weights of a unit or of all weights."
        ),
    ] = 0.5
    scale: Scale = "fan_in"


class LaplacePrior(PriorFamily):
    """Independent Laplace distributions around zero."""

    scale: Scale = "fan_in"


class StudentTPrior(PriorFamily):
    """Independent Student t distributions around zero."""

    df: Annotated[PositiveNumber, Field(description="Degrees of freedom.")] = 4.0
    scale: Scale = "fan_in"


class ScaleMixtureNormalPrior(PriorFamily):
    """A wide and a narrow normal around zero (Blundell et al. 2015)."""

    pi: Annotated[
        Number, Field(gt=0, lt=1, description="Weight of the first normal.")
    ] = 0.5
    scale1: PositiveNumber = 1.0
    scale2: PositiveNumber = math.exp(-6)


class HorseshoePrior(PriorFamily):
    """Normals with half-Cauchy scales, for sparse weights."""

    scale: Scale = "fan_in"
    bounded = False


class GammaNormalPrior(PriorFamily):
    """Normals with one unknown precision, gamma-distributed, per tensor."""

    shape: PositiveNumber = 6.0
    rate: PositiveNumber = 6.0


class EmpiricalNormalPrior(PriorFamily):
    """A normal fitted to the weights of its tensor, which must be at least ten."""

    hyperprior: Annotated[
        tuple[PositiveNumber, PositiveNumber] | None,
        Field(description="Shape and scale of an inverse-gamma prior of the variance."),
    ] = None

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        """Without a hyperprior, the scale shrinks to 0 with the weights."""
        return self.hyperprior is not None


PRIORS: dict[str, type[PriorFamily]] = {
    "normal": NormalPrior,
    "correlated_normal": CorrelatedNormalPrior,
    "laplace": LaplacePrior,
    "student_t": StudentTPrior,
    "scale_mixture_normal": ScaleMixtureNormalPrior,
    "horseshoe": HorseshoePrior,
    "gamma_normal": GammaNormalPrior,
    "empirical_normal": EmpiricalNormalPrior,
}
