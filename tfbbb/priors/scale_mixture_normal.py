"""Blundell's mixture of a wide and a narrow Gaussian."""

import math
from typing import Any

import keras
from keras import ops

from tfbbb.posteriors.posterior import sum_over_weights
from tfbbb.priors.prior import Parameters, Prior


@keras.saving.register_keras_serializable(package="tfbbb.priors")
class ScaleMixtureNormal(Prior):
    """Mixture of two zero-mean normals, weight by weight.

    `p(w) = prod_i (pi N(w_i; 0, scale1^2) + (1 - pi) N(w_i; 0, scale2^2))`

    The wide component keeps a heavy tail, the narrow one draws most weights to zero
    (Blundell et al. 2015, equation 7). Its KL divergence from a Gaussian posterior has
    no closed form and is estimated on the drawn weights.

    Example:

    >>> import tfbbb
    >>> prior = tfbbb.priors.ScaleMixtureNormal(pi=0.25, scale1=1.0, scale2=0.002)
    >>> layer = tfbbb.layers.DenseVariational(4, prior=prior)

    Args:
        pi: Weight of the first component, strictly between 0 and 1.
        scale1: Standard deviation of the first component.
        scale2: Standard deviation of the second component.
    """

    def __init__(
        self, pi: float = 0.5, scale1: float = 1.0, scale2: float = math.exp(-6)
    ):
        if not 0 < pi < 1:
            raise ValueError(
                f"`pi` must be strictly between 0 and 1. Received: pi={pi}"
            )
        for name, scale in (("scale1", scale1), ("scale2", scale2)):
            if not (math.isfinite(scale) and scale > 0):
                raise ValueError(
                    f"`{name}` must be positive and finite. Received: {name}={scale}"
                )
        self.pi = pi
        self.scale1 = scale1
        self.scale2 = scale2

    def get_config(self) -> dict[str, Any]:
        return {"pi": self.pi, "scale1": self.scale1, "scale2": self.scale2}

    def log_prob(
        self,
        parameters: Parameters,
        weights: Any,
        shape: tuple[int, ...],
        fan_in: int,
    ) -> Any:
        def log_component(share: float, scale: float) -> Any:
            constant = math.log(share / scale) - 0.5 * math.log(2 * math.pi)
            return constant - 0.5 * ops.square(weights / scale)

        densities = ops.logaddexp(
            log_component(self.pi, self.scale1),
            log_component(1.0 - self.pi, self.scale2),
        )
        return sum_over_weights(densities, shape)
