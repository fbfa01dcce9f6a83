"""The separable convolution: depthwise, then pointwise."""

from typing import Any

import keras

from tfbbb.base.types import Config, Tensor
from tfbbb.layers.composite import CompositeVariationalLayer
from tfbbb.layers.conv_variational import Conv2DVariational
from tfbbb.layers.depthwise_conv2d_variational import DepthwiseConv2DVariational
from tfbbb.layers.variational import VariationalLayer


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class SeparableConv2DVariational(
    CompositeVariationalLayer, keras.layers.SeparableConv2D
):
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

    Input shape:
        [batch, height, width, channels].

    Output shape:
        [batch, new_height, new_width, filters].
    """

    def __init__(self, *arguments: Any, seed: int | None = None, **options: Any):
        super().__init__(*arguments, **options)
        self.seed = seed
        shared: dict[str, Any] = {
            **self._options,
            "data_format": self.data_format,
            "seed": seed,
            "dtype": self.dtype_policy,
        }
        self.depthwise = DepthwiseConv2DVariational(
            self.kernel_size,
            self.strides,
            self.padding,
            self.depth_multiplier,
            dilation_rate=self.dilation_rate,
            use_bias=False,
            depthwise_initializer=self.depthwise_initializer,
            depthwise_regularizer=self.depthwise_regularizer,
            depthwise_constraint=self.depthwise_constraint,
            name=f"{self.name}_depthwise",
            **shared,
        )
        self.pointwise = Conv2DVariational(
            self.filters,
            1,
            activation=self.activation,
            use_bias=self.use_bias,
            kernel_initializer=self.pointwise_initializer,
            bias_initializer=self.bias_initializer,
            kernel_regularizer=self.pointwise_regularizer,
            bias_regularizer=self.bias_regularizer,
            kernel_constraint=self.pointwise_constraint,
            bias_constraint=self.bias_constraint,
            name=f"{self.name}_pointwise",
            **shared,
        )
        self.supports_jit = False

    def any_part(self) -> VariationalLayer:
        return self.pointwise

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.depthwise.build(input_shape)
        self.pointwise.build(self.depthwise.compute_output_shape(input_shape))
        self.input_spec = self.depthwise.input_spec

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        return self.pointwise(
            self.depthwise(inputs, training=training), training=training
        )

    def get_config(self) -> Config:
        return {**super().get_config(), "seed": self.seed}
