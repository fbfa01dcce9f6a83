"""The base class of estimators."""

from collections.abc import Sequence
from typing import Annotated, Protocol

from pydantic import Field

from tfbbb.base.batch_layout import BatchLayout
from tfbbb.base.strategy import Registry, Strategy
from tfbbb.base.types import Tensor
from tfbbb.bayes.estimators.drawn_kernel import DrawnKernel
from tfbbb.bayes.families.arguments import Integer
from tfbbb.bayes.posteriors import Posterior
from tfbbb.bayes.variational_weight import VariationalWeight

_DRAWS = "Number of draws in a training step."
NumSamples = Annotated[Integer, Field(ge=1, le=64, description=_DRAWS)]
TwoSamples = Annotated[Integer, Field(ge=2, le=64, description=_DRAWS)]


class EstimatedLayer(Protocol):
    """A layer with variational weights, as estimators use it."""

    name: str
    compute_dtype: str
    members: int

    @property
    def kl_weight(self) -> Tensor: ...

    @property
    def variational_weights(self) -> list[VariationalWeight]: ...

    @property
    def step_draws(self) -> dict[str, Tensor] | None: ...

    def can_use(self, estimator: "Estimator") -> bool:
        """Whether this kind of layer can be trained by the estimator."""

    def batch_layout(self) -> BatchLayout:
        """Returns the order of the batch of the current call: members, draws, rows."""

    def has_rows_first(self) -> bool:
        """Whether the first axis of the layer's inputs is the rows of the model."""

    def noise_seed(self, place: str, *, shared: bool) -> Tensor:
        """Returns the seed of one piece of this step's noise."""

    def by_member_factor(self, divergences: Tensor) -> Tensor:
        """Returns divergences of draws, [members * samples], times `kl_factors`."""

    def keep_for_score(self, draws: dict[str, Tensor]) -> None:
        """Keeps draws whose gradient `BayesianModel` estimates by `score_function`."""

    def keep_for_loss(self, mean: Tensor, variance: Tensor) -> None:
        """Keeps the outputs' moments, over which `BayesianModel` takes the loss."""


class LinearLayer(EstimatedLayer, Protocol):
    """A layer that is linear in a kernel, as estimators use it."""

    kernel: VariationalWeight
    bias: VariationalWeight | None

    def linear(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        """Returns the part of the outputs that is linear in `kernel`."""

    def linear_in_squares(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        """Returns `linear` of the squared inputs: a variance where `kernel` is one."""

    def broadcast_bias(self, bias: Tensor, output_rank: int) -> Tensor:
        """Returns a bias in a shape that broadcasts against outputs of `linear`."""

    def cast_inputs(self, inputs: Tensor) -> Tensor:
        """Returns the inputs in the dtype that the layer computes in."""

    def input_sign_shape(self, inputs: Tensor) -> tuple[int, ...] | None:
        """Returns the shape of a row's random signs of inputs for `flipout`."""

    def output_sign_shape(self, outputs: Tensor) -> tuple[int, ...]:
        """Returns the shape of a row's random signs of outputs for `flipout`."""

    def is_local_exact(self, input_rank: int, calls: int | None) -> bool:
        """Whether drawing pre-activations is exact: a weight is used once per row."""

    def calls_in_this_pass(self) -> int | None:
        """Returns how often the model now being called calls this layer."""


class Estimator(Strategy):
    """Draws a layer's pre-activations so that their gradient estimates the ELBO's.

    Attributes:
        num_samples: Number of draws in a training step. A `BayesianModel` evaluates
            each row under every draw and averages over the draws. Any other model
            keeps the size of its batch and splits the rows evenly between the draws.
        num_products: Number of products of the inputs with a kernel in a draw.
    """

    num_samples: int = 1
    num_products: int = 1

    def can_serve(self, posterior: Posterior) -> bool:
        """Whether the estimator can train this family."""
        return True

    def serves(self, layer: EstimatedLayer, posteriors: Sequence[Posterior]) -> bool:
        """Whether the estimator can train this layer with these posteriors."""
        return layer.can_use(self) and all(map(self.can_serve, posteriors))

    def resolve(self, posteriors: Sequence[Posterior]) -> "Estimator":
        """Returns the estimator to train with: itself, except for `auto`.

        `resolve` fixes the number of draws, which must be known before a layer is
        called.
        """
        return self

    def __call__(
        self, layer: LinearLayer, inputs: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Draws one batch of pre-activations.

        Args:
            layer: A built layer, in a call.
            inputs: [batch, ...].
        """
        raise NotImplementedError

    def draw_kernels(
        self, layer: EstimatedLayer, rows: int | Tensor
    ) -> tuple[dict[str, DrawnKernel], dict[str, Tensor]]:
        """Draws all weights of a layer once, for any number of uses.

        Every weight becomes the kernel of a matrix product, [in, out]: a weight of rank
        1 becomes [1, out], whose input is the constant 1. A row has the same weights in
        all positions and time steps.

        Args:
            layer: A built layer, in a call, which cannot use `local`.
            rows: Number of rows in the batch.

        Returns:
            The kernels by name, in the layer's compute dtype, and the float32 weights
            that were drawn for them, by name, [draws, *shape].
        """
        raise NotImplementedError


registry = Registry(Estimator, package="tfbbb.estimators")
register = registry.register


def validate_num_samples(num_samples: int, at_least: int = 1) -> int:
    """Returns `num_samples`, or raises ValueError if it is not such an integer."""
    if (
        not isinstance(num_samples, int)
        or isinstance(num_samples, bool)
        or num_samples < at_least
    ):
        raise ValueError(
            f"`num_samples` must be an integer of at least {at_least}. "
            f"Received: num_samples={num_samples!r}"
        )
    return num_samples
