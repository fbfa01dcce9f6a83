"""The contract of an estimator."""

from typing import TYPE_CHECKING, Any

from tfbbb.posteriors import Posterior
from tfbbb.strategy import Strategy, snake_case

if TYPE_CHECKING:
    from tfbbb.layers.variational import VariationalLayer


class Estimator(Strategy):
    """Draws a layer's pre-activations so that their gradient estimates the ELBO's."""

    def can_serve(self, posterior: Posterior) -> bool:
        """Whether the estimator is right for this family of q."""
        return True

    def check_posteriors(self, *posteriors: Posterior | None) -> None:
        """Raises ValueError for a posterior that the estimator cannot serve."""
        for posterior in posteriors:
            if posterior is not None and not self.can_serve(posterior):
                name = snake_case(type(self).__name__)
                raise ValueError(
                    f"The estimator '{name}' cannot serve this posterior. Use "
                    "'weight', which serves any, or 'auto'. "
                    f"Received: estimator={self!r}, posterior={posterior!r}"
                )

    def __call__(
        self, layer: "VariationalLayer", inputs: Any
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
