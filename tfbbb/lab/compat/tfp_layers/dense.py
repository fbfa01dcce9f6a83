"""Fully connected layers with posteriors of kernel and bias."""

import keras
import tensorflow as tf

from tfbbb.base.types import Config, Shape, Tensor
from tfbbb.lab.compat.tfp_layers.weight_posterior import (
    Flipout,
    LocalReparameterization,
    Reparameterization,
    WeightPosterior,
    known_size,
)

_register = keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")


class _Dense(WeightPosterior):
    """`output = activation(input @ kernel + bias)`, `kernel, bias ~ q`.

    The losses of the layer hold `KL(q || p)`, unscaled: for minibatches divide it by
    the number N of training rows in `kernel_divergence_fn`.

    Args:
        units: Number of outputs.
    """

    def _set_up(self, units: int) -> None:
        self.units = int(units)
        self.input_spec = keras.layers.InputSpec(min_ndim=2)

    def build(self, input_shape: Shape) -> None:
        size = known_size(self, input_shape, -1)
        self.input_spec = keras.layers.InputSpec(min_ndim=2, axes={-1: size})
        self._add_distributions((size, self.units), (self.units,))
        self.built = True

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], self.units)

    def get_config(self) -> Config:
        return {**super().get_config(), "units": self.units}

    def _linear(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        return keras.ops.matmul(inputs, kernel)

    def _sign_shapes(self, input_shape: Shape) -> tuple[Tensor, Tensor]:
        return input_shape, tf.concat([input_shape[:-1], [self.units]], axis=0)


@_register
class DenseReparameterization(Reparameterization, _Dense):
    """A dense layer that draws one kernel per call (Kingma & Welling 2014).

    `output = activation(input @ kernel + bias)`, `kernel, bias ~ q`

    Each call adds `kernel_divergence_fn(q, p, kernel)` to the losses, for all weights
    together: divide it there by the number N of training rows.

    Raises:
        TypeError: The estimator cannot train the kernel posterior.
        ValueError: The last dimension of the input is unknown.
    """


@_register
class DenseLocalReparameterization(LocalReparameterization, _Dense):
    """A dense layer that draws its outputs (Kingma, Salimans & Welling 2015).

    `output = activation(z + bias)`, `z ~ N(input @ mean, input^2 @ stddev^2)`,
    which has less variance than a kernel drawn per call. The kernel's posterior must be
    independent normals.

    Each call adds `kernel_divergence_fn(q, p, None)` to the losses, for all weights
    together: divide it there by the number N of training rows.

    Raises:
        TypeError: The estimator cannot train the kernel posterior.
        ValueError: The last dimension of the input is unknown.
    """


@_register
class DenseFlipout(Flipout, _Dense):
    """A dense layer with a perturbation of signs of each row (Wen et al. 2018).

    `output = activation(input @ mean + ((input * r) @ noise) * s + bias)`, with
    `noise` drawn once per call and `r, s` of independent signs for each row. The
    kernel's posterior must be independent normals.

    Each call adds `kernel_divergence_fn(q, p, None)` to the losses, for all weights
    together: divide it there by the number N of training rows.

    Example:

    >>> import keras, tensorflow_probability as tfp
    >>> layer = DenseFlipout(
    ...     4, kernel_divergence_fn=lambda q, p, _: tfp.distributions.kl_divergence(
    ...         q, p) / 1000)
    >>> layer(keras.ops.ones((8, 3))).shape, len(layer.losses)
    (TensorShape([8, 4]), 1)

    Raises:
        TypeError: The estimator cannot train the kernel posterior.
        ValueError: The last dimension of the input is unknown.
    """

    salt = "DenseFlipout"
