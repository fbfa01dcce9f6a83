"""Convolutions with posteriors of kernel and bias, in one, two and three dimensions."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfbbb.base.types import Config, Shape, Tensor
from tfbbb.lab.compat.tfp_layers.weight_posterior import (
    Flipout,
    Reparameterization,
    WeightPosterior,
    known_size,
)

_register = keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")
_OPTIONS = (
    "filters",
    "kernel_size",
    "strides",
    "padding",
    "data_format",
    "dilation_rate",
)


class _Convolution(WeightPosterior):
    """A convolution over `rank` axes, a class attribute of the layers below.

    Args:
        filters: Number of output channels.
        kernel_size: Size of the kernel: an integer, or one per axis of space.
        strides: Steps of the kernel.
        padding: `"valid"` or `"same"`.
        data_format: `"channels_last"` or `"channels_first"`.
        dilation_rate: Distance between the inputs that the kernel sees.
    """

    rank = 0

    def _set_up(
        self,
        filters: int,
        kernel_size: int | Sequence[int],
        strides: int | Sequence[int] = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: int | Sequence[int] = 1,
    ) -> None:
        # The layer of Keras validates the options.
        of_keras = getattr(keras.layers, f"Conv{self.rank}D")(
            filters,
            kernel_size,
            strides=strides,
            padding=padding,
            data_format=data_format,
            dilation_rate=dilation_rate,
        )
        for name in _OPTIONS:
            setattr(self, name, getattr(of_keras, name))
        self.input_spec = keras.layers.InputSpec(ndim=self.rank + 2)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if cls.rank:
            # The documentation of the estimator holds for every rank.
            _, _, body = (cls.__mro__[1].__doc__ or "").partition("\n")
            cls.__doc__ = f"{cls.__doc__}\n{body}"
        super().__init_subclass__(**kwargs)

    @property
    def _channel_axis(self) -> int:
        return 1 if self.data_format == "channels_first" else -1

    def build(self, input_shape: Shape) -> None:
        channels = known_size(self, input_shape, self._channel_axis)
        self.input_spec = keras.layers.InputSpec(
            ndim=self.rank + 2, axes={self._channel_axis: channels}
        )
        kernel_shape = (*self.kernel_size, channels, self.filters)
        self._add_distributions(kernel_shape, (self.filters,))
        self.built = True

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        channels = input_shape[self._channel_axis]
        kernel_shape = (*self.kernel_size, channels, self.filters)
        return self._linear(
            keras.KerasTensor(input_shape), keras.KerasTensor(kernel_shape)
        ).shape

    def get_config(self) -> Config:
        options = {name: getattr(self, name) for name in _OPTIONS}
        return {**super().get_config(), **options}

    def _linear(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        return keras.ops.conv(
            inputs,
            kernel,
            strides=self.strides,
            padding=self.padding,
            data_format=self.data_format,
            dilation_rate=self.dilation_rate,
        )

    def _sign_shapes(self, input_shape: Shape) -> tuple[Tensor, Tensor]:
        return (
            tf.stack([input_shape[0], input_shape[self._channel_axis]]),
            tf.stack([input_shape[0], self.filters]),
        )

    def _over_space(self, values: Tensor) -> Tensor:
        axis = -1 if self.data_format == "channels_first" else 1
        for _ in range(self.rank):
            values = tf.expand_dims(values, axis)
        return values


class _ConvReparameterization(Reparameterization, _Convolution):
    """Draws one kernel per call (Kingma & Welling 2014).

    Each call adds `kernel_divergence_fn(q, p, kernel)` to the losses, for all weights
    together: divide it there by the number N of training rows.
    """


class _ConvFlipout(Flipout, _Convolution):
    """Draws a perturbation and flips its signs row by row (Wen et al. 2018).

    Each call adds `kernel_divergence_fn(q, p, None)` to the losses, for all weights
    together: divide it there by the number N of training rows.
    """

    salt = "ConvFlipout"


@_register
class Conv1DReparameterization(_ConvReparameterization):
    """Convolution over a sequence by one kernel drawn per call."""

    rank = 1


@_register
class Conv2DReparameterization(_ConvReparameterization):
    """Convolution over an image by one kernel drawn per call."""

    rank = 2


@_register
class Conv3DReparameterization(_ConvReparameterization):
    """Convolution over a volume by one kernel drawn per call."""

    rank = 3


@_register
class Conv1DFlipout(_ConvFlipout):
    """Convolution over a sequence by flipout."""

    rank = 1


@_register
class Conv2DFlipout(_ConvFlipout):
    """Convolution over an image by flipout."""

    rank = 2


@_register
class Conv3DFlipout(_ConvFlipout):
    """Convolution over a volume by flipout."""

    rank = 3


Convolution1DReparameterization = Conv1DReparameterization
Convolution2DReparameterization = Conv2DReparameterization
Convolution3DReparameterization = Conv3DReparameterization
Convolution1DFlipout = Conv1DFlipout
Convolution2DFlipout = Conv2DFlipout
Convolution3DFlipout = Conv3DFlipout
