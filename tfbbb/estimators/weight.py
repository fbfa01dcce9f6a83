"""One draw of the weights per step, for all rows."""

from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from tfbbb.estimators.estimator import Estimator, checked_num_samples
from tfbbb.posteriors import Posterior

if TYPE_CHECKING:
    from tfbbb.layers.linear_variational import LinearVariationalLayer
    from tfbbb.layers.variational import VariationalLayer


@keras.saving.register_keras_serializable(package="tfbbb.estimators")
class Weight(Estimator):
    """Draws one kernel and bias per step (Blundell et al. 2015, section 3.2).

    `w = mean + sigma * eps`, `eps ~ N(0, 1)`, the same for every row of the batch and
    for every call of a shared layer. It serves any posterior whose draws have a
    gradient.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(4, estimator="weight")

    Args:
        num_samples: Number of draws in a training step. A `tfbbb.BayesianModel` passes
            each row once for each draw and averages over them; in any other model,
            whose batch cannot grow, its rows are dealt to the draws in equal parts.
    """

    def __init__(self, num_samples: int = 1):
        self.num_samples = checked_num_samples(num_samples)

    def get_config(self) -> dict[str, Any]:
        return {"num_samples": self.num_samples}

    def can_serve(self, posterior: Posterior) -> bool:
        return posterior.reparameterised

    def __call__(
        self, layer: "LinearVariationalLayer", inputs: Any
    ) -> tuple[Any, dict[str, Any]]:
        draws = drawn_weights(layer)
        return with_weights(layer, inputs, draws), draws


def drawn_weights(layer: "VariationalLayer") -> dict[str, Any]:
    """Returns this step's draws of every weight of a layer, by name, float32.

    [members * samples, *shape], without the leading axis where there is one draw.
    """
    samples = layer.fold().samples
    return {
        weight.name: weight.draw(layer.noise_seed(weight.name, shared=True), samples)
        for weight in layer.variational_weights
    }


def with_weights(
    layer: "LinearVariationalLayer", inputs: Any, draws: dict[str, Any]
) -> Any:
    """Returns the pre-activations that a layer computes with drawn weights."""
    dtype = layer.compute_dtype
    inputs = layer.cast_inputs(inputs)
    fold = layer.fold()
    outputs = layer.linear(fold.split(inputs), ops.cast(draws["kernel"], dtype))
    if layer.bias is not None:
        bias = ops.cast(draws["bias"], dtype)
        outputs += layer.broadcast_bias(bias, len(outputs.shape))
    return fold.merge(outputs, ops.shape(inputs)[0])
