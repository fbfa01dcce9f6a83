"""The normal posterior over all weights of a model together."""

from __future__ import annotations

import math

from tfbbb.base.lazy import keras, tf
from tfbbb.base.numbers import positive_integer
from tfbbb.base.strategy import saved_as
from tfbbb.base.types import Initializer, Tensor
from tfbbb.bayes.posteriors.posterior import (
    MAX_COVARIANCE,
    Declared,
    InitialScale,
    NormalPosterior,
    Parameters,
    Sizes,
    unflatten_weights,
)


@saved_as("tfbbb.posteriors")
class JointNormal(NormalPosterior):
    """One normal over the D weights of several tensors, with their full covariance.

    `q(w_1, ..., w_T) = N(mean, L L^T)`,   `w_t = mean_t + L_t z`

    L is lower triangular, [D, D], and L_t are the rows of tensor t, [n_t, D]. All
    tensors of a draw use the same noise z [D], so weights of different layers are
    correlated. A tensor stores its rows and the index of its first row, which is 0
    until it is set; `tfbbb.inference.Laplace(structure="full")` sets it.
    The entropies of the tensors, each given those before it, add up to that of q.

    Example:

    >>> import tfbbb
    >>> posterior = tfbbb.posteriors.JointNormal(size=20)
    >>> posterior.noise_shape((3, 4))
    (20,)

    Args:
        size: Number D of weights of all tensors, at most 4096.
    """

    shares_noise = True
    # The tensors are independent only given each other.
    has_density = False

    def __init__(self, size: int, initial_scale: InitialScale = 0.1):
        super().__init__(initial_scale)
        if positive_integer("size", size) > MAX_COVARIANCE:
            raise ValueError(
                f"A joint normal is for {MAX_COVARIANCE} weights at most. "
                f"Received: size={size}"
            )
        self.size = size

    def covariance_size(self, shape: Sizes) -> int:
        return self.size

    def declared(self, shape: Sizes, fan_in: int, mean: Initializer) -> Declared:
        number = math.prod(shape)
        if number > self.size:
            raise ValueError(
                f"The tensor has {number} weights, more than the whole posterior. "
                f"Received: size={self.size}, shape={shape}"
            )
        scale = math.exp(self.initial_log_scale(fan_in))
        return {
            "mean": (shape, mean),
            "factor": ((number, self.size), keras.initializers.Identity(scale)),
            "first": ((), "zeros", False),
        }

    def noise_shape(self, shape: Sizes) -> Sizes:
        return (self.size,)

    def variance(self, parameters: Parameters, shape: Sizes) -> Tensor:
        squares = tf.square(self.factor(parameters))
        return unflatten_weights(tf.reduce_sum(squares, axis=-1), shape)

    def perturb(self, parameters: Parameters, noise: Tensor, shape: Sizes) -> Tensor:
        deviations = tf.linalg.matmul(
            noise[..., tf.newaxis, :], self.factor(parameters), transpose_b=True
        )
        return unflatten_weights(deviations[..., 0, :], shape)

    def log_volume(self, parameters: Parameters, shape: Sizes) -> Tensor:
        factor = parameters["factor"]
        own = tf.one_hot(self._own_columns(parameters, factor), self.size)
        diagonal = tf.reduce_sum(own * factor, axis=-1)
        return tf.reduce_sum(tf.math.log(tf.abs(diagonal)), axis=-1)

    def factor(self, parameters: Parameters) -> Tensor:
        """Returns the rows L_t of the factor, [..., n, D]: 0 above the diagonal."""
        factor = parameters["factor"]
        own = self._own_columns(parameters, factor)[..., tf.newaxis]
        return tf.where(tf.range(self.size) <= own, factor, tf.zeros_like(factor))

    def _own_columns(self, parameters: Parameters, factor: Tensor) -> tf.Tensor:
        """Returns the column of each row's diagonal entry, [..., n]."""
        first = tf.cast(parameters["first"], tf.int32)[..., tf.newaxis]
        return first + tf.range(factor.shape[-2])
