"""The base class of priors with one scale."""

import math
from typing import Annotated, Literal

from pydantic import Field

from tfbbb.base.numbers import positive_number
from tfbbb.bayes.families.arguments import PositiveNumber
from tfbbb.bayes.priors.prior import Prior

Scale = Annotated[
    PositiveNumber | Literal["fan_in"],
    Field(description="A scale for all weights, or `fan_in` for 1/sqrt(fan_in)."),
]


class ScaledPrior(Prior):
    """A prior with mode zero and one scale `s` for all weights of a tensor.

    Args:
        scale: `s`, a positive number, or `"fan_in"` for `1 / sqrt(fan_in)`.
    """

    scale: float | Literal["fan_in"]

    def __init__(self, scale: Scale = "fan_in"):
        if isinstance(scale, str) and scale != "fan_in":
            raise ValueError(
                "`scale` must be a positive finite number or 'fan_in'. "
                f"Received: scale={scale!r}"
            )
        self.scale = scale if scale == "fan_in" else positive_number("scale", scale)

    def scale_for(self, fan_in: int) -> float:
        """Returns the scale `s` of a weight with this fan-in."""
        return 1.0 / math.sqrt(fan_in) if self.scale == "fan_in" else float(self.scale)
