"""Convolutions with posteriors of kernel and bias, in one, two and three dimensions."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfbbb.base.numbers import choice
from tfbbb.base.types import ArrayLike, Config, Shape, Tensor
from tfbbb.lab.compat.tfp_layers.weight_posterior import (
    Flipout,
    Reparameterization,
    WeightPosterior,
)

_register = keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")


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
        self.filters = int(filters)
        self.kernel_size = self._per_axis("kernel_size", kernel_size)
        self.strides = self._per_axis("strides", strides)
        self.dilation_rate = self._per_axis("dilation_rate", dilation_rate)
        self.padding = choice("padding", str(padding).lower(), ("valid", "same"))
        self.data_format = choice(
            "data_format", str(data_format).lower(), ("channels_last", "channels_first")
        )
        self.input_spec = keras.layers.InputSpec(ndim=self.rank + 2)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if cls.rank:
            steps = 1 if cls.rank == 1 else (1,) * cls.rank
            cls.defaults = {"strides": steps, "dilation_rate": steps}
            # The documentation of the estimator holds for every rank.
            _, _, body = (cls.__mro__[1].__doc__ or "").partition("\n")
            cls.__doc__ = f"{cls.__doc__}\n{body}"
        super().__init_subclass__(**kwargs)

    def build(self, input_shape: Shape) -> None:
        axis = 1 if self.data_format == "channels_first" else -1
        channels = input_shape[axis]
        if channels is None:
            raise ValueError(
                f"The number of channels of the input of '{self.name}' must be known. "
                f"Received: input_shape={input_shape}"
            )
        self.input_spec = keras.layers.InputSpec(
            ndim=self.rank + 2, axes={axis: channels}
        )
        self._add_distributions(
            (*self.kernel_size, channels, self.filters), (self.filters,)
        )
        self.built = True

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return self._linear(
            keras.KerasTensor(input_shape),
            keras.KerasTensor(
                (*self.kernel_size, *self._channels(input_shape), self.filters)
            ),
        ).shape

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "strides": self.strides,
            "padding": self.padding,
            "data_format": self.data_format,
            "dilation_rate": self.dilation_rate,
        }

    def _linear(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        return keras.ops.conv(
            inputs,
            kernel,
            strides=self.strides,
            padding=self.padding,
            data_format=self.data_format,
            dilation_rate=self.dilation_rate,
        )

    def _add_bias(self, outputs: Tensor, bias: Tensor) -> Tensor:
        return outputs + self._over_space(tf.expand_dims(bias, 0))

    def _sign_shapes(self, input_shape: Shape) -> tuple[Tensor, Tensor]:
        axis = 1 if self.data_format == "channels_first" else -1
        return (
            tf.stack([input_shape[0], input_shape[axis]]),
            tf.stack([input_shape[0], self.filters]),
        )

    def _over_space(self, values: ArrayLike) -> Tensor:
        """Reshapes [rows, channels] to broadcast over the axes of space."""
        axis = -1 if self.data_format == "channels_first" else 1
        for _ in range(self.rank):
            values = tf.expand_dims(values, axis)
        return values

    def _channels(self, shape: Shape) -> Shape:
        return (shape[1 if self.data_format == "channels_first" else -1],)

    def _per_axis(self, name: str, value: int | Sequence[int]) -> tuple[int, ...]:
        try:
            values = (value,) * self.rank if isinstance(value, int) else tuple(value)
            numbers = tuple(int(n) for n in values)
        except (TypeError, ValueError):
            numbers = ()
        if len(numbers) != self.rank or min(numbers) < 1:
            raise ValueError(
                f"`{name}` must be a positive integer or {self.rank} of them. "
                f"Received: {name}={value!r}"
            )
        return numbers


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
