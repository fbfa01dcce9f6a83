"""One draw of the weights per step, for all rows."""

from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from tfbbb.estimators.estimator import Estimator

if TYPE_CHECKING:
    from tfbbb.layers.variational import VariationalLayer


@keras.saving.register_keras_serializable(package="tfbbb.estimators")
class Weight(Estimator):
    """Draws one kernel and bias per step (Blundell et al. 2015, section 3.2).

    `w = mean + sigma * eps`, `eps ~ N(0, 1)`, the same for every row of the batch and
    for every call of a shared layer. It serves any posterior.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(4, estimator="weight")
    """

    def __call__(
        self, layer: "VariationalLayer", inputs: Any
    ) -> tuple[Any, dict[str, Any]]:
        dtype = layer.compute_dtype
        draws = {
            weight.name: weight.draw(layer.noise_seed(weight.name, shared=True))
            for weight in layer.variational_weights
        }
        kernel = ops.cast(draws["kernel"], dtype)
        outputs = layer.linear(ops.cast(inputs, dtype), kernel)
        if layer.bias is not None:
            outputs += ops.cast(draws["bias"], dtype)
        return outputs, draws
