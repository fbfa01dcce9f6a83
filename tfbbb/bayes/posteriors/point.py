"""The point posterior: maximum likelihood, or maximum a posteriori."""

from __future__ import annotations

from tfbbb.base.lazy import tf
from tfbbb.base.types import Initializer, Tensor
from tfbbb.bayes.posteriors.posterior import (
    Declared,
    Parameters,
    Posterior,
    Sizes,
    register,
)


@register(
    "point",
    "A point estimate: maximum a posteriori, or maximum likelihood without a prior.",
)
class Point(Posterior):
    """A single trained value: maximum likelihood or maximum a posteriori.

    With `prior=None` training maximises the likelihood, as a Keras layer does. With a
    prior it maximises the posterior density (MAP): the KL divergence of a point is
    infinite, so the loss contains only the part that depends on the point,

        -log p(mean).

    Example:

    >>> import tfbbb
    >>> maximum_likelihood = tfbbb.layers.DenseVariational(
    ...     4, posterior="point", prior=None, bias_posterior="point", bias_prior=None
    ... )
    """

    factorised = True
    symmetric = True
    deterministic = True
    has_density = False

    def declared(self, shape: Sizes, fan_in: int, mean: Initializer) -> Declared:
        return {"mean": (shape, mean)}

    def noise_shape(self, shape: Sizes) -> Sizes:
        return (0,)

    def mean(self, parameters: Parameters, shape: Sizes) -> Tensor:
        return parameters["mean"]

    def variance(self, parameters: Parameters, shape: Sizes) -> Tensor:
        return tf.zeros_like(parameters["mean"])

    def perturb(self, parameters: Parameters, noise: Tensor, shape: Sizes) -> Tensor:
        leading = tf.shape(noise)[:-1]
        return tf.zeros(tf.concat([leading, shape], axis=0), noise.dtype)
