"""The separable convolution: depthwise, then pointwise."""

from __future__ import annotations

from typing import Any

import keras

from tfbbb.base.types import (
    Activation,
    Config,
    Constraint,
    Initializer,
    Regularizer,
    Tensor,
)
from tfbbb.layers.conv_variational import Conv2DVariational
from tfbbb.layers.convolution import Size
from tfbbb.layers.depthwise_conv2d_variational import DepthwiseConv2DVariational
from tfbbb.layers.variational import (
    DEFAULT_BIAS_PRIOR,
    DEFAULT_POSTERIOR,
    DEFAULT_PRIOR,
    EstimatorLike,
    PosteriorLike,
    PriorLike,
)


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class SeparableConv2DVariational(keras.Layer):
    """A depthwise convolution, then one of size 1, whose weights have a posterior.

    `output = activation(conv2d(depthwise_conv2d(input, kernel_d), kernel_p) + bias)`

    with `kernel_d, kernel_p, bias ~ q`. It consists of two layers, `depthwise` and
    `pointwise`, each of which adds its own divergence; the options hold for both. All
    positions of a row share its weights, as in `Conv2DVariational`.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.SeparableConv2DVariational(4, 3, kl_weight=0.1)
    >>> layer(np.ones((2, 8, 8, 3))).shape
    TensorShape([2, 6, 6, 4])
    >>> len(layer.losses)
    2

    Args:
        filters: Number of output channels.
        kernel_size: Height and width of the depthwise kernels, one integer or two.
        strides: Steps of the depthwise kernels, one integer or two.
        padding: `"valid"` (none) or `"same"`.
        data_format: `"channels_last"` or `"channels_first"`; by default Keras' own.
        dilation_rate: Distance between the inputs that neighbours in the kernel meet,
            one integer or two.
        depth_multiplier: Number of depthwise channels for each input channel.
        activation: Keras activation, by name or as a function.
        use_bias: Whether a bias is added, one for each filter.
        depthwise_initializer: Keras initializer of the depthwise posterior mean.
        pointwise_initializer: Keras initializer of the pointwise posterior mean.
        bias_initializer: Keras initializer of the bias' posterior mean.
        depthwise_regularizer: Keras regularizer of the depthwise posterior mean.
        pointwise_regularizer: Keras regularizer of the pointwise posterior mean.
        bias_regularizer: Keras regularizer of the bias' posterior mean.
        activity_regularizer: Keras regularizer of the output.
        depthwise_constraint: Keras constraint on the depthwise posterior mean.
        pointwise_constraint: Keras constraint on the pointwise posterior mean.
        bias_constraint: Keras constraint on the bias' posterior mean.
        posterior: q of both kernels.
        prior: p of both kernels.
        bias_posterior: q of the bias.
        bias_prior: p of the bias.
        estimator: How noise reaches the output of both layers.
        kl_weight: Weight of the KL divergence in the loss, for both layers.
        members: Number of posteriors that both layers hold.
        seed: Integer that fixes the noise of training.
        **options: `name`, `dtype`, `trainable`, as for any Keras layer.

    Input shape:
        [batch, height, width, channels], or [batch, channels, height, width] with
        `data_format="channels_first"`.

    Output shape:
        [batch, new_height, new_width, filters], or [batch, filters, new_height,
        new_width].

    Raises:
        ValueError: As for `Conv2DVariational` and `DepthwiseConv2DVariational`.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Size,
        strides: Size = (1, 1),
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Size = (1, 1),
        depth_multiplier: int = 1,
        activation: Activation = None,
        use_bias: bool = True,
        depthwise_initializer: Initializer = "glorot_uniform",
        pointwise_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        depthwise_regularizer: Regularizer = None,
        pointwise_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        activity_regularizer: Regularizer = None,
        depthwise_constraint: Constraint = None,
        pointwise_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        *,
        posterior: PosteriorLike = DEFAULT_POSTERIOR,
        prior: PriorLike = DEFAULT_PRIOR,
        bias_posterior: PosteriorLike = DEFAULT_POSTERIOR,
        bias_prior: PriorLike = DEFAULT_BIAS_PRIOR,
        estimator: EstimatorLike = "auto",
        kl_weight: float | None = None,
        members: int = 1,
        seed: int | None = None,
        **options: Any,
    ):
        super().__init__(activity_regularizer=activity_regularizer, **options)
        shared: dict[str, Any] = {
            "data_format": data_format,
            "posterior": posterior,
            "prior": prior,
            "estimator": estimator,
            "kl_weight": kl_weight,
            "members": members,
            "seed": seed,
            "dtype": self.dtype_policy,
        }
        self.depthwise = DepthwiseConv2DVariational(
            kernel_size,
            strides,
            padding,
            depth_multiplier,
            dilation_rate=dilation_rate,
            use_bias=False,
            depthwise_initializer=depthwise_initializer,
            depthwise_regularizer=depthwise_regularizer,
            depthwise_constraint=depthwise_constraint,
            name=f"{self.name}_depthwise",
            **shared,
        )
        self.pointwise = Conv2DVariational(
            filters,
            1,
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=pointwise_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=pointwise_regularizer,
            bias_regularizer=bias_regularizer,
            kernel_constraint=pointwise_constraint,
            bias_constraint=bias_constraint,
            bias_posterior=bias_posterior,
            bias_prior=bias_prior,
            name=f"{self.name}_pointwise",
            **shared,
        )
        self.seed = seed
        self.supports_jit = False
        self.input_spec = self.depthwise.input_spec

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.depthwise.build(input_shape)
        self.pointwise.build(self.depthwise.compute_output_shape(input_shape))
        self.input_spec = self.depthwise.input_spec

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        return self.pointwise(
            self.depthwise(inputs, training=training), training=training
        )

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        between = self.depthwise.compute_output_shape(input_shape)
        return self.pointwise.compute_output_shape(between)

    def get_config(self) -> Config:
        pointwise = self.pointwise.get_config()
        for part in ("initializer", "regularizer", "constraint"):
            pointwise[f"pointwise_{part}"] = pointwise.pop(f"kernel_{part}")
        for fixed in ("kernel_size", "strides", "padding", "dilation_rate", "groups"):
            del pointwise[fixed]
        return {
            **self.depthwise.get_config(),
            **pointwise,
            **super().get_config(),
            "seed": self.seed,
        }
