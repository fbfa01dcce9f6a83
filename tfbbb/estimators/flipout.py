"""Nearly independent weights for every row at the price of one draw."""

from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from tfbbb import noise
from tfbbb.estimators.estimator import Estimator, checked_num_samples
from tfbbb.fold import Fold
from tfbbb.posteriors import Posterior

if TYPE_CHECKING:
    from tfbbb.layers.linear_variational import LinearVariationalLayer


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

    Args:
        num_samples: Number of draws of `delta` in a training step, as for `Weight`.
    """

    def __init__(self, num_samples: int = 1):
        self.num_samples = checked_num_samples(num_samples)

    def get_config(self) -> dict[str, Any]:
        return {"num_samples": self.num_samples}

    def can_serve(self, posterior: Posterior) -> bool:
        return posterior.symmetric and posterior.factorised

    def __call__(
        self, layer: "LinearVariationalLayer", inputs: Any
    ) -> tuple[Any, dict[str, Any]]:
        dtype = layer.compute_dtype
        inputs = layer.cast_inputs(inputs)
        rows = ops.shape(inputs)[0]
        fold, members = layer.fold(), Fold(layer.members)
        drawn = {
            weight.name: weight.noise(
                layer.noise_seed(weight.name, shared=True), fold.samples
            )
            for weight in layer.variational_weights
        }

        def signs(place: str, shape: tuple[int, ...]) -> Any:
            seed = layer.noise_seed(place, shared=True)
            return noise.signs(seed, (rows, *shape), dtype)

        means = ops.cast(layer.kernel.mean, dtype)
        outputs = layer.linear(members.split(inputs), means)
        if layer.bias is not None:
            bias = ops.cast(layer.bias.mean, dtype)
            outputs += layer.broadcast_bias(bias, len(outputs.shape))
        outputs = members.merge(outputs, rows)

        flipped = inputs
        input_shape = layer.input_sign_shape(inputs)
        if input_shape is not None:
            flipped = inputs * signs("input_signs", input_shape)
        delta = ops.cast(layer.kernel.perturb(drawn["kernel"]), dtype)
        perturbation = layer.linear(fold.split(flipped), delta)
        if layer.bias is not None:
            # The bias is one more row of the kernel, whose input is the constant 1.
            ones = (1,) * (len(outputs.shape) - 1)
            delta = ops.cast(layer.bias.perturb(drawn["bias"]), dtype)
            perturbation += fold.split(
                signs("bias_signs", ones)
            ) * layer.broadcast_bias(delta, len(perturbation.shape))
        perturbation = fold.merge(perturbation, rows)
        signed = perturbation * signs("output_signs", layer.output_sign_shape(outputs))
        draws = {
            weight.name: weight.draw_from(drawn[weight.name])
            for weight in layer.variational_weights
        }
        return outputs + signed, draws
