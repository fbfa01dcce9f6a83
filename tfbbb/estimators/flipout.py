"""Nearly independent weights for every row at the price of one draw."""

from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from tfbbb import noise
from tfbbb.estimators.estimator import Estimator
from tfbbb.posteriors import Posterior

if TYPE_CHECKING:
    from tfbbb.layers.variational import VariationalLayer


@keras.saving.register_keras_serializable(package="tfbbb.estimators")
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
    """

    def can_serve(self, posterior: Posterior) -> bool:
        return posterior.symmetric and posterior.factorised

    def __call__(
        self, layer: "VariationalLayer", inputs: Any
    ) -> tuple[Any, dict[str, Any]]:
        dtype = layer.compute_dtype
        inputs = ops.cast(inputs, dtype)
        draws = {
            weight.name: weight.draw(layer.noise_seed(weight.name, shared=True))
            for weight in layer.variational_weights
        }

        def delta(weight: Any) -> Any:
            return ops.cast(draws[weight.name] - weight.mean, dtype)

        def row_signs(place: str, size: int) -> Any:
            shape = (ops.shape(inputs)[0], *[1] * (len(inputs.shape) - 2), size)
            return noise.signs(layer.noise_seed(place, shared=True), shape, dtype)

        outputs = layer.linear(inputs, ops.cast(layer.kernel.mean, dtype))
        output_signs = row_signs("output_signs", outputs.shape[-1])
        flipped = inputs * row_signs("input_signs", inputs.shape[-1])
        perturbation = layer.linear(flipped, delta(layer.kernel))
        if layer.bias is not None:
            # The bias is one more row of the kernel, whose input is the constant 1.
            outputs += ops.cast(layer.bias.mean, dtype)
            perturbation += delta(layer.bias) * row_signs("bias_signs", 1)
        return outputs + perturbation * output_signs, draws
