"""The contract of an estimator."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tfbbb.estimators.drawn_kernel import DrawnKernel
from tfbbb.families.estimators import EstimatorFamily
from tfbbb.posteriors import Posterior
from tfbbb.snake_case import snake_case
from tfbbb.strategy import Strategy

if TYPE_CHECKING:
    from tfbbb.layers.linear_variational import LinearVariationalLayer
    from tfbbb.layers.variational import VariationalLayer


class Estimator(EstimatorFamily, Strategy):
    """Draws a layer's pre-activations so that their gradient estimates the ELBO's.

    Attributes:
        num_samples: Number of draws in a training step. A `BayesianModel` passes each
            row once for each draw and averages over them; in any other model, where
            the batch cannot grow, its rows are dealt to the draws in equal parts.
    """

    num_samples: int = 1

    def check(self, layer: "VariationalLayer", posteriors: Sequence[Posterior]) -> None:
        """Raises ValueError where the estimator cannot serve layer and posteriors."""
        from tfbbb import estimators

        if self.serves(layer, posteriors):
            return
        others = [estimators.get(name) for name in estimators.names()]
        working = [
            f"'{snake_case(type(other).__name__)}'"
            for other in others
            if other.serves(layer, posteriors)
        ]
        if not working:
            raise ValueError(
                "No estimator can serve these posteriors in one layer: one has draws "
                "without a gradient, another no density for 'score_function'. Give "
                f"the layer others. Received: posteriors={list(posteriors)} in a "
                f"{type(layer).__name__}"
            )
        raise ValueError(
            f"The estimator '{snake_case(type(self).__name__)}' cannot serve this "
            f"layer with its posteriors. Use one of {', '.join(working)}. "
            f"Received: estimator={self!r}, posteriors={list(posteriors)} in a "
            f"{type(layer).__name__}"
        )

    def serves(
        self, layer: "VariationalLayer", posteriors: Sequence[Posterior]
    ) -> bool:
        """Whether the estimator is right for a layer with all of these families."""
        return layer.can_use(self) and all(map(self.can_serve, posteriors))

    def resolve(self, posteriors: Sequence[Posterior]) -> "Estimator":
        """Returns the estimator to train with: itself, but for one that chooses.

        What must be known before a layer is called, the number of draws, is decided
        here.
        """
        return self

    def __call__(
        self, layer: "LinearVariationalLayer", inputs: Any
    ) -> tuple[Any, dict[str, Any]]:
        """Draws one batch of pre-activations.

        Args:
            layer: A built layer, in a call.
            inputs: [batch, ...].

        Returns:
            The pre-activations, and the float32 weights that were drawn for them, by
            name, if any: the divergence is estimated on these.
        """
        raise NotImplementedError

    def draw_kernels(
        self, layer: "VariationalLayer", rows: Any
    ) -> tuple[dict[str, DrawnKernel], dict[str, Any]]:
        """Draws all weights of a layer once, to be used as often as it likes.

        Every weight is taken as the kernel of a matrix product, [in, out]: one of rank
        1 as [1, out], whose input is the constant 1. A row sees the same weights
        wherever it uses them, in all positions and time steps.

        Args:
            layer: A built layer, in a call, which cannot use `local`.
            rows: Number of rows in the batch.

        Returns:
            The kernels by name, in the layer's compute dtype, and the float32 weights
            that were drawn for them, by name, [draws, *shape].
        """
        raise NotImplementedError


def checked_num_samples(num_samples: int, at_least: int = 1) -> int:
    """Returns `num_samples`, or raises ValueError where it is no such integer."""
    if (
        not isinstance(num_samples, int)
        or isinstance(num_samples, bool)
        or num_samples < at_least
    ):
        raise ValueError(
            f"`num_samples` must be an integer, {at_least} at the least. "
            f"Received: num_samples={num_samples!r}"
        )
    return num_samples
