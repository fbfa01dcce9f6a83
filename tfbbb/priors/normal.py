"""The Gaussian prior with mean zero."""

import math
from typing import Any

import keras
from keras import ops

from tfbbb.posteriors.posterior import sum_over_weights
from tfbbb.priors.prior import Parameters, Prior


@keras.saving.register_keras_serializable(package="tfbbb.priors")
class Normal(Prior):
    """Independent normals with mean zero and one scale: `p(w) = prod_i N(w_i; 0, s^2)`.

    With `scale="fan_in"`, `s = 1 / sqrt(fan_in)`: a unit's pre-activation then has, a
    priori, the mean square of its inputs as its variance, whatever the width of the
    layer (Neal 1996). A bias is a weight of the constant input 1, so its `s` is 1.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(4, prior=tfbbb.priors.Normal(scale=0.5))

    Args:
        scale: Standard deviation `s`, a positive number, or `"fan_in"`.
    """

    def __init__(self, scale: float | str = "fan_in"):
        if scale != "fan_in" and not (
            isinstance(scale, int | float) and math.isfinite(scale) and scale > 0
        ):
            raise ValueError(
                "`scale` must be a positive finite number or 'fan_in'. "
                f"Received: scale={scale!r}"
            )
        self.scale = scale

    def get_config(self) -> dict[str, Any]:
        return {"scale": self.scale}

    def scale_for(self, fan_in: int) -> float:
        """Returns the standard deviation `s` of a weight with this fan-in."""
        return 1.0 / math.sqrt(fan_in) if self.scale == "fan_in" else float(self.scale)

    def log_prob(
        self,
        parameters: Parameters,
        weights: Any,
        shape: tuple[int, ...],
        fan_in: int,
    ) -> Any:
        scale = self.scale_for(fan_in)
        constant = math.log(scale) + 0.5 * math.log(2 * math.pi)
        densities = -0.5 * ops.square(weights / scale) - constant
        return sum_over_weights(densities, shape)
