"""The base class of priors p(w)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tfbbb.base.lazy import keras
from tfbbb.base.strategy import Registry, Strategy
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.posteriors.posterior import Sizes

AddWeight = Callable[..., Any]
Parameters = Mapping[str, Any]


class WeightMoments(Protocol):
    """The properties of a weight that a prior may read.

    Attributes:
        shape: Shape of the weight tensor.
        size: Number of weights (of one member).
        members: Number of members; with 1 there is no axis for them.
        mean: E[w] under q, [..., *shape].
        variance: Var[w] under q, [..., *shape].
        prior_parameters: Values of the prior's own variables by name.
    """

    shape: Sizes
    size: int
    members: int

    @property
    def mean(self) -> Tensor: ...

    @property
    def variance(self) -> Tensor: ...

    @property
    def prior_parameters(self) -> Parameters: ...

    def sum(self, values: ArrayLike) -> Tensor:
        """Returns `values` summed over the weights, [...]."""


class Prior(Strategy):
    """A prior p(w) over one weight tensor `w`.

    Like a posterior, a prior holds no variables: the layer holds the variables that
    `add_variables` creates, and passes their values to every method as `parameters`.
    Parameters and weights may have leading axes (members of an ensemble, samples),
    which broadcast.

    A class with the decorator `tfbbb.priors.register` has a string name. Jobs may give
    the arguments of its constructor that are annotated with a `pydantic.Field`.

    Attributes:
        bounded: Whether the density has an upper bound. If not, a point estimate has no
            maximum to converge to.
    """

    bounded = True

    def add_variables(
        self, add_weight: AddWeight, shape: Sizes, fan_in: int, path: str
    ) -> dict[str, keras.Variable]:
        """Creates the prior's own variables, if it has any.

        Args:
            add_weight: `add_weight(name, shape, initializer, trainable=True)` creates
                one variable.
            shape: Shape of the weight tensor.
            fan_in: Number of inputs that one output unit sums over (1 for a bias).
            path: Name of the layer and of the weight in it, `"dense/kernel"`.
        """
        return {}

    def parameters(self, weight: WeightMoments) -> Parameters:
        """Returns the parameters of p(w): by default the values of its variables."""
        return weight.prior_parameters

    def log_prob(
        self, parameters: Parameters, weights: Tensor, shape: Sizes, fan_in: int
    ) -> Tensor:
        """Returns log p(weights), summed over the weights, [...], in nats.

        Args:
            parameters: The parameters.
            weights: float32, [..., *shape].
            shape: Shape of the weight tensor.
            fan_in: Number of inputs that one output unit sums over (1 for a bias).
        """
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

        Args:
            parameters: The parameters.
            mean: E[w], [..., *shape].
            variance: Var[w], element by element, [..., *shape].
            shape: Shape of the weight tensor.
            fan_in: Number of inputs that one output unit sums over (1 for a bias).
        """
        raise NotImplementedError


registry = Registry(Prior, package="tfbbb.priors")
register = registry.register
