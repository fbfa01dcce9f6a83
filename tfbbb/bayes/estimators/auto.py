"""The default estimator: the exact one with the lowest gradient variance."""

from __future__ import annotations

from collections.abc import Sequence

from tfbbb.base.types import Tensor
from tfbbb.bayes.estimators.drawn_kernel import DrawnKernel
from tfbbb.bayes.estimators.estimator import (
    EstimatedLayer,
    Estimator,
    LinearLayer,
    register,
)
from tfbbb.bayes.estimators.flipout import Flipout
from tfbbb.bayes.estimators.local import Local
from tfbbb.bayes.estimators.score_function import ScoreFunction
from tfbbb.bayes.estimators.weight import Weight
from tfbbb.bayes.posteriors import Posterior


@register("auto", "The exact estimator of least variance: the default.")
class Auto(Estimator):
    """Takes `local` if it is exact, else `flipout`, `weight` or `score_function`.

    If draws have no gradient it is `score_function`, with two draws in each step.
    `local` is exact if q factorises and each weight is used once per row: not for a
    shared layer, nor if several positions of a row share one kernel, and not in a
    subclassed model, where this is not known. Where the rows of a layer are not those
    of the model (steps that are folded into rows, a tensor without rows) or are mixed
    later, rows share weights, so it takes `weight`.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(4, estimator="auto")
    """

    def serves(self, layer: EstimatedLayer, posteriors: Sequence[Posterior]) -> bool:
        return any(e.serves(layer, posteriors) for e in (Weight(), ScoreFunction()))

    def resolve(self, posteriors: Sequence[Posterior]) -> Estimator:
        if all(map(Weight().can_serve, posteriors)):
            return self
        return ScoreFunction()

    def choose(self, layer: LinearLayer, input_rank: int) -> Estimator:
        """Returns the estimator for this layer in the model being called."""
        families = [weight.posterior for weight in layer.variational_weights]
        if (
            not all(family.deterministic for family in families)
            and all(map(Local().can_serve, families))
            and layer.is_local_exact(input_rank, layer.calls_in_this_pass())
            and layer.has_rows_first()
        ):
            return Local()
        return self.choose_in_call(layer)

    def choose_in_call(self, layer: EstimatedLayer) -> Estimator:
        """Returns an estimator that draws weights, for a layer that is being called."""
        return self.choose_of_weights(layer) if layer.has_rows_first() else Weight()

    def choose_of_weights(self, layer: EstimatedLayer) -> Estimator:
        """Returns the best estimator among those that draw weights, for rows alone."""
        families = [weight.posterior for weight in layer.variational_weights]
        if all(family.deterministic for family in families):
            return Weight()
        return Flipout() if all(map(Flipout().can_serve, families)) else Weight()

    def __call__(
        self, layer: LinearLayer, inputs: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return self.choose(layer, len(inputs.shape))(layer, inputs)

    def draw_kernels(
        self, layer: EstimatedLayer, rows: int | Tensor
    ) -> tuple[dict[str, DrawnKernel], dict[str, Tensor]]:
        return self.choose_in_call(layer).draw_kernels(layer, rows)
