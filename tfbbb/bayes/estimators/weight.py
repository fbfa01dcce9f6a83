"""One draw of the weights per step, for all rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfbbb.base.lazy import ops
from tfbbb.base.numbers import int32
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.estimators.drawn_kernel import DrawnKernel, GroupedKernel
from tfbbb.bayes.estimators.estimator import (
    EstimatedLayer,
    Estimator,
    LinearLayer,
    NumSamples,
    register,
)
from tfbbb.bayes.posteriors.posterior import Posterior
from tfbbb.bayes.variational_weight import VariationalWeight


@register("weight", "Draws one matrix of weights for all rows of a step; for any q.")
class Weight(Estimator):
    """Draws one kernel and bias per step (Blundell et al. 2015, section 3.2).

    `w = mean + sigma * eps`, `eps ~ N(0, 1)`, the same for every row of the batch and
    for every call of a shared layer. It can train any posterior whose draws have a
    gradient.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(4, estimator="weight")

    Args:
        num_samples: Number of draws in a training step. A `tfbbb.BayesianModel`
            evaluates each row under every draw and averages over the draws. Any other
            model keeps the size of its batch and splits the rows evenly between the
            draws.
    """

    def __init__(self, num_samples: NumSamples = 1):
        self.num_samples = int32("num_samples", num_samples, least=1)

    def can_serve(self, posterior: Posterior) -> bool:
        return posterior.reparameterised

    def __call__(
        self, layer: LinearLayer, inputs: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        draws, dtype = self.drawn_weights(layer), layer.compute_dtype
        bias = ops.cast(draws["bias"], dtype) if layer.bias is not None else None
        kernel = GroupedKernel(
            ops.cast(draws["kernel"], dtype), layer.batch_layout(), affine(layer, bias)
        )
        return kernel.product(layer.cast_inputs(inputs)), draws

    def draw_kernels(
        self, layer: EstimatedLayer, rows: int | Tensor
    ) -> tuple[dict[str, DrawnKernel], dict[str, Tensor]]:
        draws = self.drawn_weights(layer)
        return grouped_kernels(layer, draws, layer.batch_layout()), draws

    def drawn_weights(self, layer: EstimatedLayer) -> dict[str, Tensor]:
        """Returns draws by name, [members * samples, *shape], or [*shape] of one."""
        samples = layer.batch_layout().samples
        return {
            weight.name: weight.draw(
                layer.noise_seed(weight.name, shared=True), samples
            )
            for weight in layer.variational_weights
        }


def affine(layer: LinearLayer, bias: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """Returns `linear(inputs, kernel) + bias` as a function of inputs and kernel."""

    def linear_and_bias(inputs: Tensor, kernel: Tensor) -> Tensor:
        outputs = layer.linear(inputs, kernel)
        if bias is None:
            return outputs
        return outputs + layer.broadcast_bias(bias, len(outputs.shape))

    return linear_and_bias


def grouped_kernels(
    layer: EstimatedLayer, draws: dict[str, Tensor], layout: Any
) -> dict[str, DrawnKernel]:
    """Returns the kernels of drawn weights, [draws, *shape], by name."""
    return {
        weight.name: GroupedKernel(
            as_matrix(ops.cast(draws[weight.name], layer.compute_dtype), weight), layout
        )
        for weight in layer.variational_weights
    }


def as_matrix(values: ArrayLike, weight: VariationalWeight) -> Tensor:
    """Returns values of a weight, [..., out] as [..., 1, out] if it is of rank 1."""
    return values if len(weight.shape) > 1 else ops.expand_dims(values, -2)
