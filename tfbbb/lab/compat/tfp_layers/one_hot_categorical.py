"""Layers of one-hot encoded classes."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.private_apis import set_mean
from tfbbb.base.types import Distribution, DType, Tensor, TensorFunction
from tfbbb.lab.compat.tfp_layers.mixture import MixtureSameFamily
from tfbbb.lab.compat.tfp_layers.parametric import Parametric

tfd = tfp.distributions

_register = keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")


@_register
class OneHotCategorical(Parametric):
    """One of d classes, one-hot encoded, of d logits.

    Args:
        event_size: Number d of classes.
    """

    def __init__(
        self,
        event_size: int,
        convert_to_tensor_fn: TensorFunction | str = tfd.Distribution.sample,
        sample_dtype: DType = None,
        validate_args: bool = False,
        **kwargs: Any,
    ):
        super().__init__(
            convert_to_tensor_fn,
            kwargs,
            event_size=event_size,
            dtype=sample_dtype,
            validate_args=validate_args,
        )

    @staticmethod
    def new(
        params: Tensor,
        event_size: int,
        dtype: DType = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> Distribution:
        """Returns the distribution of a tensor of parameters."""
        params = tf.convert_to_tensor(params, name="params")
        return tfd.OneHotCategorical(
            logits=params,
            dtype=tf.as_dtype(dtype or params.dtype),
            validate_args=validate_args,
        )

    @staticmethod
    def params_size(event_size: int, name: str | None = None) -> int:
        """Returns the number of parameters of one distribution."""
        return event_size


@_register
class CategoricalMixtureOfOneHotCategorical(Parametric):
    """A mixture of k one-hot encoded distributions over d classes.

    Its `k * (1 + d)` parameters are the logits of the mixture and of its components.
    The mean of the distribution is the vector of the classes' probabilities, and
    `log_mean()` their logarithms.

    Args:
        event_size: Number d of classes.
        num_components: Number k of components.
    """

    def __init__(
        self,
        event_size: int,
        num_components: int,
        convert_to_tensor_fn: TensorFunction | str = tfd.Distribution.sample,
        sample_dtype: DType = None,
        validate_args: bool = False,
        **kwargs: Any,
    ):
        super().__init__(
            convert_to_tensor_fn,
            kwargs,
            event_size=event_size,
            num_components=num_components,
            dtype=sample_dtype,
            validate_args=validate_args,
        )

    @staticmethod
    def new(
        params: Tensor,
        event_size: int,
        num_components: int,
        dtype: DType = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> Distribution:
        """Returns the distribution of a tensor of parameters."""
        distribution = MixtureSameFamily.new(
            params,
            num_components,
            functools.partial(
                OneHotCategorical.new, event_size=event_size, dtype=dtype
            ),
            validate_args=validate_args,
        )
        mean = functools.partial(_at_all_classes, distribution.prob, distribution)
        set_mean(distribution, mean)
        distribution.log_mean = functools.partial(
            _at_all_classes, distribution.log_prob, distribution
        )
        return distribution

    @staticmethod
    def params_size(
        event_size: int, num_components: int, name: str | None = None
    ) -> int:
        """Returns the number of parameters of one distribution."""
        return MixtureSameFamily.params_size(
            num_components, OneHotCategorical.params_size(event_size)
        )


def _at_all_classes(
    function: Callable[[Tensor], Tensor], distribution: Distribution
) -> Tensor:
    """Returns a function's value for each class, [*batch, d]."""
    classes = distribution.event_shape_tensor()[-1]
    batch_axes = tf.size(distribution.batch_shape_tensor())
    one_hot = tf.reshape(
        tf.eye(classes, dtype=distribution.dtype),
        tf.concat([[classes], tf.ones([batch_axes], tf.int32), [classes]], axis=0),
    )
    values = function(one_hot)
    return tf.transpose(values, tf.concat([tf.range(1, batch_axes + 1), [0]], axis=0))
