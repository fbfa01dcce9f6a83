"""The base class of estimators."""

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from tfbbb.base.strategy import Registry, Strategy
from tfbbb.base.types import Tensor
from tfbbb.bayes.estimators.drawn_kernel import DrawnKernel
from tfbbb.bayes.families.arguments import Integer
from tfbbb.bayes.posteriors import Posterior

_DRAWS = "Number of draws in a training step."
NumSamples = Annotated[Integer, Field(ge=1, le=64, description=_DRAWS)]
TwoSamples = Annotated[Integer, Field(ge=2, le=64, description=_DRAWS)]


# A `VariationalLayer`, and one that is linear in its kernel: their modules import this.
EstimatedLayer: TypeAlias = Any
LinearLayer: TypeAlias = Any


class Estimator(Strategy):
    """Draws a layer's pre-activations so that their gradient estimates the ELBO's.

    Attributes:
        num_samples: Number of draws in a training step: see `Weight`.
    """

    num_samples: int = 1

    def can_serve(self, posterior: Posterior) -> bool:
        """Whether the estimator can train this family."""
        return True

    def serves(self, layer: EstimatedLayer, posteriors: Sequence[Posterior]) -> bool:
        """Whether the estimator can train this layer with these posteriors."""
        return layer.can_use(self) and all(map(self.can_serve, posteriors))

    def resolve(self, posteriors: Sequence[Posterior]) -> "Estimator":
        """Returns the estimator that trains: `auto` must know its number of draws."""
        return self

    def __call__(
        self, layer: LinearLayer, inputs: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Draws the pre-activations of a layer in a call, and returns its weights."""
        raise NotImplementedError

    def draw_kernels(
        self, layer: EstimatedLayer, rows: int | Tensor
    ) -> tuple[dict[str, DrawnKernel], dict[str, Tensor]]:
        """Draws all weights of a layer once, for any number of uses.

        Every weight becomes the kernel of a matrix product, [in, out]: a weight of rank
        1 becomes [1, out], whose input is the constant 1. A row has the same weights in
        all positions and time steps. Returns the kernels by name, in the layer's
        compute dtype, and the float32 weights of their draws, [draws, *shape].
        """
        raise NotImplementedError


registry = Registry(Estimator, package="tfbbb.estimators")
register = registry.register
