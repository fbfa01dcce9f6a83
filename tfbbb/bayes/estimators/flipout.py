"""Flipout: weights for each row, uncorrelated between rows, from one draw."""

from __future__ import annotations

from tfbbb.base import noise
from tfbbb.base.batch_layout import BatchLayout
from tfbbb.base.lazy import ops
from tfbbb.base.numbers import int32
from tfbbb.base.types import Tensor
from tfbbb.bayes.estimators.drawn_kernel import (
    DrawnKernel,
    FlippedKernel,
    GroupedKernel,
    flipped_product,
)
from tfbbb.bayes.estimators.estimator import (
    EstimatedLayer,
    Estimator,
    LinearLayer,
    NumSamples,
    register,
)
from tfbbb.bayes.estimators.weight import affine, as_matrix
from tfbbb.bayes.posteriors.posterior import Posterior
from tfbbb.bayes.variational_weight import VariationalWeight


@register(
    "flipout", "Shares one perturbation of the weights, with random signs for each row."
)
class Flipout(Estimator):
    """One perturbation of the kernel, with random signs for every row.

    `output_n = x_n @ mean + ((x_n * s_n) @ delta) * r_n`

    with `delta = w - mean` for one draw of w, and independent signs `s_n`, `r_n` of ±1
    for every row n (Wen et al. 2018). Where q is symmetric and factorises, each row
    sees weights from q, and two rows see weights that are uncorrelated. All positions
    of one row share its weights.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(4, estimator="flipout")

    Args:
        num_samples: Number of draws of `delta` in a training step, as for `Weight`.
    """

    def __init__(self, num_samples: NumSamples = 1):
        self.num_samples = int32("num_samples", num_samples, least=1)

    def can_serve(self, posterior: Posterior) -> bool:
        return posterior.symmetric and posterior.factorised

    def __call__(
        self, layer: LinearLayer, inputs: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        inputs = layer.cast_inputs(inputs)
        draw = _Draw(layer, ops.shape(inputs)[0])
        mean_bias = None if layer.bias is None else draw.mean(layer.bias)
        mean = GroupedKernel(
            draw.mean(layer.kernel), draw.members, affine(layer, mean_bias)
        )
        outputs = mean.product(inputs)
        input_shape = layer.input_sign_shape(inputs)
        outputs += flipped_product(
            GroupedKernel(draw.delta(layer.kernel), draw.layout, layer.linear),
            inputs,
            None if input_shape is None else draw.signs("input_signs", input_shape),
            draw.signs("output_signs", layer.output_sign_shape(outputs)),
        )
        if layer.bias is not None:

            def signed(signs: Tensor, bias: Tensor) -> Tensor:
                return signs * layer.broadcast_bias(bias, len(signs.shape))

            bias = GroupedKernel(draw.delta(layer.bias), draw.layout, signed)
            ones = (1,) * (len(outputs.shape) - 1)
            outputs += bias.product(draw.signs("bias_signs", ones))
        return outputs, draw.weights()

    def draw_kernels(
        self, layer: EstimatedLayer, rows: int | Tensor
    ) -> tuple[dict[str, DrawnKernel], dict[str, Tensor]]:
        draw = _Draw(layer, rows)
        kernels: dict[str, DrawnKernel] = {}
        for weight in layer.variational_weights:
            name = weight.name
            *inputs, outputs = weight.shape
            kernels[name] = FlippedKernel(
                GroupedKernel(as_matrix(draw.mean(weight), weight), draw.members),
                GroupedKernel(as_matrix(draw.delta(weight), weight), draw.layout),
                draw.signs(f"{name}_input_signs", tuple(inputs or [1])),
                draw.signs(f"{name}_output_signs", (outputs,)),
            )
        return kernels, draw.weights()


class _Draw:
    """One draw of a layer's weights, and the signs of the rows that share it."""

    def __init__(self, layer: EstimatedLayer, rows: int | Tensor):
        self.layout = layer.batch_layout()
        self.members = BatchLayout(layer.members)
        self._layer = layer
        self._rows = rows
        self._noise = {
            weight.name: weight.noise(
                layer.noise_seed(weight.name, shared=True), self.layout.samples
            )
            for weight in layer.variational_weights
        }

    def mean(self, weight: VariationalWeight) -> Tensor:
        """Returns E[w], [members, *shape], in the dtype that the layer computes in."""
        return ops.cast(weight.mean, self._layer.compute_dtype)

    def delta(self, weight: VariationalWeight) -> Tensor:
        """Returns `w - E[w]`, [groups, *shape], in that dtype."""
        delta = weight.perturb(self._noise[weight.name])
        return ops.cast(delta, self._layer.compute_dtype)

    def signs(self, place: str, shape: tuple[int, ...]) -> Tensor:
        """Returns independent signs of every row, [rows, *shape], in that dtype."""
        seed = self._layer.noise_seed(place, shared=True)
        return noise.signs(seed, (self._rows, *shape), self._layer.compute_dtype)

    def weights(self) -> dict[str, Tensor]:
        """Returns w itself by name, [groups, *shape], float32."""
        return {
            weight.name: weight.draw_from(self._noise[weight.name])
            for weight in self._layer.variational_weights
        }
