"""The base class of priors with one scale."""

import math
from typing import Any, Literal

from tfbbb.base.numbers import positive_number
from tfbbb.bayes.priors.prior import Prior


class ScaledPrior(Prior):
    """A prior with mode zero and one scale `s` for all weights of a tensor.

    Args:
        scale: `s`, a positive number, or `"fan_in"` for `1 / sqrt(fan_in)`.
    """

    scale: float | Literal["fan_in"]

    def __init__(self, scale: float | Literal["fan_in"] = "fan_in"):
        if isinstance(scale, str) and scale != "fan_in":
            raise ValueError(
                "`scale` must be a positive finite number or 'fan_in'. "
                f"Received: scale={scale!r}"
            )
        self.scale = scale if scale == "fan_in" else positive_number("scale", scale)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "scale": self.scale}

    def scale_for(self, fan_in: int) -> float:
        """Returns the scale `s` of a weight with this fan-in."""
        return 1.0 / math.sqrt(fan_in) if self.scale == "fan_in" else float(self.scale)
