"""The factorised normal posterior of Bayes by backprop."""

from __future__ import annotations

from tfbbb.base.lazy import ops, tf
from tfbbb.base.private_apis import custom_gradient
from tfbbb.base.types import ArrayLike, Initializer, Tensor
from tfbbb.bayes.posteriors.posterior import (
    Declared,
    NormalPosterior,
    Parameters,
    Sizes,
    register,
    sum_over_weights,
)


@register("mean_field_normal", "Independent normals: the default.")
class MeanFieldNormal(NormalPosterior):
    """Independent normals, one per weight (Blundell et al. 2015, section 3.2).

    `q(w) = prod_i N(w_i; mean_i, exp(log_scale_i)^2)`

    The standard deviation is the exponential of a free parameter, not its softplus, so
    that the parameter itself is the logarithm that the KL divergence needs.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(
    ...     4, posterior=tfbbb.posteriors.MeanFieldNormal(initial_scale=0.5)
    ... )
    >>> layer.build((None, 25))
    >>> float(layer.kernel.stddev[0, 0])  # 0.5 / sqrt(25)
    0.1
    """

    factorised = True
    symmetric = True

    def declared(self, shape: Sizes, fan_in: int, mean: Initializer) -> Declared:
        log_scale = self.initial_log_scale(fan_in)
        return {"mean": (shape, mean), "log_scale": (shape, log_scale)}

    def variance(self, parameters: Parameters, shape: Sizes) -> Tensor:
        return _squared_exp(parameters["log_scale"])

    def perturb(self, parameters: Parameters, noise: Tensor, shape: Sizes) -> Tensor:
        return _exp_times(parameters["log_scale"], noise)

    def squared_distance(
        self, parameters: Parameters, deviations: Tensor, shape: Sizes
    ) -> Tensor:
        standardized = deviations * ops.exp(-parameters["log_scale"])
        return sum_over_weights(ops.square(standardized), shape)

    def log_volume(self, parameters: Parameters, shape: Sizes) -> Tensor:
        return sum_over_weights(parameters["log_scale"], shape)


# The gradients of these functions take fewer passes over the weights than TensorFlow's
# own, and reuse values that exist already. A weight tensor is far larger than a
# processor's caches, so besides matrix products a step costs passes over the weights.


def _squared_exp(x: ArrayLike) -> Tensor:
    @custom_gradient
    def squared_exp(x: ArrayLike) -> Tensor:
        # Uses the exponential, which the perturbation needs too.
        values = tf.square(tf.exp(x))
        return values, lambda gradient: (2.0 * gradient) * values

    return squared_exp(x)


def _exp_times(x: ArrayLike, noise: Tensor) -> Tensor:
    # If x broadcasts to several draws, TensorFlow sums the gradients over them.
    if tuple(x.shape) != tuple(noise.shape):
        return tf.exp(x) * noise

    @custom_gradient
    def product(x: ArrayLike) -> Tensor:
        values = tf.exp(x) * noise
        return values, lambda gradient: gradient * values

    return product(x)
