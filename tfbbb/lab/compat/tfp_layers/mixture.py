"""Layers of mixtures."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.types import Config, Distribution, Shape, Tensor, TensorFunction
from tfbbb.lab.compat.tfp_layers.distribution_tensor import as_distribution
from tfbbb.lab.compat.tfp_layers.function_config import to_config
from tfbbb.lab.compat.tfp_layers.independent import (
    IndependentLogistic,
    IndependentNormal,
)
from tfbbb.lab.compat.tfp_layers.parametric import Parametric

tfd = tfp.distributions

_register = keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")


@_register
class MixtureSameFamily(Parametric):
    """A mixture of k distributions of one family.

    The first k parameters are the mixture's logits; the rest, reshaped to
    [..., k, size], go through `component_layer`.

    Args:
        num_components: Number k of components.
        component_layer: Layer or function that makes the components of a tensor
            [..., k, size], e.g. `IndependentNormal(event_shape)`.
    """

    def __init__(
        self,
        num_components: int,
        component_layer: Callable[[Tensor], Distribution],
        convert_to_tensor_fn: TensorFunction | str = tfd.Distribution.sample,
        validate_args: bool = False,
        **kwargs: Any,
    ):
        super().__init__(
            convert_to_tensor_fn,
            kwargs,
            num_components=num_components,
            component_layer=component_layer,
            validate_args=validate_args,
        )
        self._component_layer = component_layer

    @staticmethod
    def new(
        params: Tensor,
        num_components: int,
        component_layer: Callable[[Tensor], Distribution],
        validate_args: bool = False,
        name: str | None = None,
    ) -> Distribution:
        """Returns the distribution of a tensor of parameters."""
        params = tf.convert_to_tensor(params, name="params")
        shape = tf.concat([tf.shape(params)[:-1], [num_components, -1]], axis=0)
        components = component_layer(tf.reshape(params[..., num_components:], shape))
        return tfd.MixtureSameFamily(
            tfd.Categorical(logits=params[..., :num_components]),
            as_distribution(components),
        )

    @staticmethod
    def params_size(
        num_components: int, component_params_size: int, name: str | None = None
    ) -> int:
        """Returns the number of parameters of one distribution."""
        return num_components * (1 + component_params_size)

    def get_config(self) -> Config:
        config = super().get_config()
        return {**config, "component_layer": to_config(self._component_layer)}


class _Mixture(Parametric):
    """Base of the mixtures with independent components.

    Args:
        num_components: Number of components.
    """

    component: type[IndependentNormal | IndependentLogistic]

    def __init__(
        self,
        num_components: int,
        event_shape: Shape = (),
        convert_to_tensor_fn: TensorFunction | str = tfd.Distribution.sample,
        validate_args: bool = False,
        **kwargs: Any,
    ):
        super().__init__(
            convert_to_tensor_fn,
            kwargs,
            num_components=num_components,
            event_shape=event_shape,
            validate_args=validate_args,
        )

    @classmethod
    def new(
        cls,
        params: Tensor,
        num_components: int,
        event_shape: Shape = (),
        validate_args: bool = False,
        name: str | None = None,
    ) -> Distribution:
        """Returns the distribution of a tensor of parameters."""
        return MixtureSameFamily.new(
            params,
            num_components,
            lambda t: cls.component.new(t, event_shape, validate_args),
            validate_args=validate_args,
        )

    @classmethod
    def params_size(
        cls, num_components: int, event_shape: Shape = (), name: str | None = None
    ) -> int:
        """Returns the number of parameters of one distribution."""
        return MixtureSameFamily.params_size(
            num_components, cls.component.params_size(event_shape)
        )


@_register
class MixtureNormal(_Mixture):
    """A mixture of independent normal variables: see `IndependentNormal`."""

    component = IndependentNormal


@_register
class MixtureLogistic(_Mixture):
    """A mixture of independent logistic variables: see `IndependentLogistic`."""

    component = IndependentLogistic
