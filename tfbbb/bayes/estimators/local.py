"""The local reparameterisation: noise on pre-activations, not on weights."""

from __future__ import annotations

from tfbbb.base import noise
from tfbbb.base.batch_layout import BatchLayout
from tfbbb.base.lazy import ops, tf
from tfbbb.base.numbers import int32
from tfbbb.base.private_apis import custom_gradient
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.estimators.estimator import (
    Estimator,
    LinearLayer,
    NumSamples,
    register,
)
from tfbbb.bayes.posteriors.posterior import Posterior


@register(
    "local", "Draws pre-activations; for weights that are independent normals under q."
)
class Local(Estimator):
    """Draws pre-activations from their own distribution (Kingma et al. 2015).

    For independent normal weights, a pre-activation of the row x is

        N(x . mean + mean_b, x^2 . sigma^2 + sigma_b^2)

    and the rows of a batch get independent noise, which gives the gradient less
    variance than any draw of weights. It is exact if each weight is used once per row.
    With a kernel for several positions (a convolution), or in a shared layer, each
    output has the right distribution, but their joint distribution is wrong: `local` is
    an approximation, which is used only if you name it.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(4, estimator="local")

    Args:
        num_samples: Number of draws in a training step, as for `Weight`. Every row has
            its own noise anyway, so the number matters only in a
            `tfbbb.BayesianModel`.
    """

    def __init__(self, num_samples: NumSamples = 1):
        self.num_samples = int32("num_samples", num_samples, least=1)

    def can_serve(self, posterior: Posterior) -> bool:
        return posterior.factorised

    def __call__(
        self, layer: LinearLayer, inputs: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        layout = BatchLayout(layer.members)
        mean, variance = pre_activation_moments(
            layer, layout.split(inputs), weight_moments(layer)
        )
        stddev = _safe_sqrt(variance)
        seed = layer.noise_seed("pre_activations", shared=False)
        outputs = mean + stddev * noise.normal(seed, ops.shape(mean), mean.dtype)
        return layout.merge(outputs, ops.shape(inputs)[0]), {}


def weight_moments(layer: LinearLayer) -> dict[str, Tensor]:
    """Returns `mean`, `variance`, and `bias_mean`, `bias_variance` of a layer."""

    def cast(values: ArrayLike) -> Tensor:
        return ops.cast(values, layer.compute_dtype)

    moments = {
        "mean": cast(layer.kernel.mean),
        "variance": cast(layer.kernel.variance * _scale(layer)),
    }
    if layer.bias is not None:
        moments["bias_mean"] = cast(layer.bias.mean)
        moments["bias_variance"] = cast(layer.bias.variance)
    return moments


def pre_activation_moments(
    layer: LinearLayer, inputs: Tensor, moments: dict[str, Tensor]
) -> tuple[Tensor, Tensor]:
    """Returns mean and variance of pre-activations for inputs [(members,) n, ...]."""
    inputs = layer.cast_inputs(inputs)
    mean = layer.linear(inputs, moments["mean"])
    scale = _scale(layer)
    scaled = inputs if scale == 1 else inputs / scale**0.5
    variance = layer.linear_in_squares(scaled, moments["variance"])
    if layer.bias is not None:
        rank = len(mean.shape)
        mean += layer.broadcast_bias(moments["bias_mean"], rank)
        variance += layer.broadcast_bias(moments["bias_variance"], rank)
    return mean, variance


def _scale(layer: LinearLayer) -> int:
    """Returns the factor of variances, and divisor of squared inputs.

    Variances of about 1 / fan_in would have few digits in half precision.
    """
    return layer.kernel.fan_in if layer.compute_dtype == "float16" else 1


def _safe_sqrt(variance: Tensor) -> Tensor:
    # The square root has an infinite slope at 0 (a row of zeros without a bias), which
    # would make the gradient NaN: use the slope 0 there.
    @custom_gradient
    def safe_sqrt(variance: Tensor) -> Tensor:
        root = tf.sqrt(variance)
        return root, lambda gradient: tf.math.divide_no_nan(0.5 * gradient, root)

    return safe_sqrt(variance)
