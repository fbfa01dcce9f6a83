"""The local reparameterisation: noise on pre-activations, not on weights."""

from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from tfbbb import noise
from tfbbb.estimators.estimator import Estimator
from tfbbb.posteriors import Posterior

if TYPE_CHECKING:
    from tfbbb.layers.variational import VariationalLayer


@keras.saving.register_keras_serializable(package="tfbbb.estimators")
class Local(Estimator):
    """Draws pre-activations from their own distribution (Kingma et al. 2015).

    For independent normal weights, a pre-activation of the row x is

        N(x . mean + mean_b, x^2 . sigma^2 + sigma_b^2)

    and the rows of a batch get independent noise, which gives the gradient less
    variance than any draw of weights. It is exact where each weight is used once per
    row; a kernel that serves several positions, or a shared layer, would need noise
    that is correlated between them, so there it is an approximation.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(4, estimator="local")
    """

    def can_serve(self, posterior: Posterior) -> bool:
        return posterior.factorised

    def __call__(
        self, layer: "VariationalLayer", inputs: Any
    ) -> tuple[Any, dict[str, Any]]:
        mean, variance = pre_activation_moments(layer, inputs)
        stddev = _safe_sqrt(variance)
        seed = layer.noise_seed("pre_activations", shared=False)
        return mean + stddev * noise.normal(seed, ops.shape(mean), mean.dtype), {}


def pre_activation_moments(layer: "VariationalLayer", inputs: Any) -> tuple[Any, Any]:
    """Returns mean and variance of a layer's pre-activations under q."""
    dtype = layer.compute_dtype
    inputs = ops.cast(inputs, dtype)
    mean = layer.linear(inputs, ops.cast(layer.kernel.mean, dtype))
    variance = layer.linear(ops.square(inputs), ops.cast(layer.kernel.variance, dtype))
    if layer.bias is not None:
        mean += ops.cast(layer.bias.mean, dtype)
        variance += ops.cast(layer.bias.variance, dtype)
    return mean, variance


def _safe_sqrt(variance: Any) -> Any:
    # The square root of 0 (a row of zeros without a bias) has an infinite slope, which
    # turns into NaN in the gradient; both branches have to be finite.
    positive = variance > 0
    return ops.where(positive, ops.sqrt(ops.where(positive, variance, 1.0)), 0.0)
