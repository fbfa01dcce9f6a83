"""The base classes of priors p(w)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from tfbbb.base.lazy import keras
from tfbbb.base.numbers import positive_number
from tfbbb.base.strategy import Registry, Strategy
from tfbbb.base.types import Tensor
from tfbbb.bayes.families.arguments import PositiveNumber
from tfbbb.bayes.posteriors.posterior import Sizes

AddWeight = Callable[..., Any]
Parameters = Mapping[str, Any]
# A `VariationalWeight`, whose module imports this one.
WeightMoments: TypeAlias = Any


class Prior(Strategy):
    """A prior p(w) over one weight tensor `w`.

    Like a posterior, a prior holds no variables: the layer holds the variables that
    `add_variables` creates, and passes their values to every method as `parameters`.
    A class with the decorator `tfbbb.priors.register` has a string name.

    Attributes:
        bounded: Whether the density has an upper bound. If not, a point estimate has no
            maximum to converge to.
    """

    bounded = True

    def add_variables(
        self, add_weight: AddWeight, shape: Sizes, fan_in: int, path: str
    ) -> dict[str, keras.Variable]:
        """Creates the prior's own variables, as `Posterior.add_variables` does.

        `path` names the layer and the weight in it, `"dense/kernel"`.
        """
        return {}

    def parameters(self, weight: WeightMoments) -> Parameters:
        """Returns the parameters of p(w): by default the values of its variables."""
        return weight.prior_parameters

    def log_prob(
        self, parameters: Parameters, weights: Tensor, shape: Sizes, fan_in: int
    ) -> Tensor:
        """Returns log p(weights) of [..., *shape], summed over the weights, in nats."""
        raise NotImplementedError

    def expected_log_prob(
        self,
        parameters: Parameters,
        mean: Tensor,
        variance: Tensor,
        shape: Sizes,
        fan_in: int,
    ) -> Tensor:
        """Returns E[log p(w)] of normal weights, summed, [...], in nats.

        Implemented if there is a closed form. For a hierarchical prior it may be the
        lower bound of mean-field inference; the class documents this.
        """
        raise NotImplementedError


class PriorOfSquares(Prior):
    """A prior whose density depends on the squares of the weights alone.

    Under a normal posterior, their means take their place: exactly for a normal prior,
    else as the bound that the class describes.
    """

    def log_prob(
        self, parameters: Parameters, weights: Tensor, shape: Sizes, fan_in: int
    ) -> Tensor:
        return self.log_prob_of_squares(parameters, weights**2, shape, fan_in)

    def expected_log_prob(
        self,
        parameters: Parameters,
        mean: Tensor,
        variance: Tensor,
        shape: Sizes,
        fan_in: int,
    ) -> Tensor:
        return self.log_prob_of_squares(parameters, mean**2 + variance, shape, fan_in)

    def log_prob_of_squares(
        self, parameters: Parameters, squares: Tensor, shape: Sizes, fan_in: int
    ) -> Tensor:
        """Returns log p of weights with these squares, [..., *shape]."""
        raise NotImplementedError


registry = Registry(Prior, package="tfbbb.priors")
register = registry.register


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
