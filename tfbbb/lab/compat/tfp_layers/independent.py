"""Layers of independent scalar distributions."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.private_apis import give_bernoulli_parameters
from tfbbb.base.types import Distribution, DType, Shape, Tensor, TensorFunction
from tfbbb.lab.compat.tfp_layers.event_shape import (
    as_vector,
    event_size,
    with_event_shape,
)
from tfbbb.lab.compat.tfp_layers.parametric import Parametric

tfd = tfp.distributions

_register = keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")


class _Independent(Parametric):
    """Base of the layers that differ in their distribution only."""

    def __init__(
        self,
        event_shape: Shape = (),
        convert_to_tensor_fn: TensorFunction | str = tfd.Distribution.sample,
        validate_args: bool = False,
        **kwargs: Any,
    ):
        super().__init__(
            convert_to_tensor_fn,
            kwargs,
            event_shape=event_shape,
            validate_args=validate_args,
        )

    @staticmethod
    def params_size(event_shape: Shape = (), name: str | None = None) -> int:
        """Returns the number of parameters of one distribution."""
        return event_size(event_shape)


@_register
class IndependentBernoulli(Parametric):
    """Independent Bernoulli variables of `prod(event_shape)` logits."""

    def __init__(
        self,
        event_shape: Shape = (),
        convert_to_tensor_fn: TensorFunction | str = tfd.Distribution.sample,
        sample_dtype: DType = None,
        validate_args: bool = False,
        **kwargs: Any,
    ):
        super().__init__(
            convert_to_tensor_fn,
            kwargs,
            event_shape=event_shape,
            dtype=sample_dtype,
            validate_args=validate_args,
        )

    @staticmethod
    def new(
        params: Tensor,
        event_shape: Shape = (),
        dtype: DType = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> Distribution:
        """Returns the distribution of a tensor of parameters."""
        params = tf.convert_to_tensor(params, name="params")
        bernoulli = tfd.Bernoulli(
            logits=with_event_shape(params, event_shape),
            dtype=tf.as_dtype(dtype or params.dtype),
            validate_args=validate_args,
        )
        distribution = _independent(bernoulli, event_shape, validate_args)
        # For `convert_to_tensor_fn=tfd.Bernoulli.logits`.
        give_bernoulli_parameters(distribution, bernoulli)
        return distribution

    @staticmethod
    def params_size(event_shape: Shape = (), name: str | None = None) -> int:
        """Returns the number of parameters of one distribution."""
        return event_size(event_shape)


class _LocScale(_Independent):
    """Base of the layers whose distribution has a location and a scale."""

    family: Callable[..., Distribution]

    @classmethod
    def new(
        cls,
        params: Tensor,
        event_shape: Shape = (),
        validate_args: bool = False,
        name: str | None = None,
    ) -> Distribution:
        """Returns the distribution of a tensor of parameters."""
        loc, scale = tf.split(tf.convert_to_tensor(params, name="params"), 2, axis=-1)
        base = cls.family(
            loc=with_event_shape(loc, event_shape),
            scale=tf.math.softplus(with_event_shape(scale, event_shape)),
            validate_args=validate_args,
        )
        return _independent(base, event_shape, validate_args)

    @staticmethod
    def params_size(event_shape: Shape = (), name: str | None = None) -> int:
        """Returns the number of parameters of one distribution."""
        return 2 * event_size(event_shape)


@_register
class IndependentLogistic(_LocScale):
    """Independent logistic variables of `2 * prod(event_shape)` parameters.

    The first half are the locations, `softplus` of the second half the scales.
    """

    family = tfd.Logistic


@_register
class IndependentNormal(_LocScale):
    """Independent normal variables of `2 * prod(event_shape)` parameters.

    The first half are the means, `softplus` of the second half the standard deviations.

    Example:

    >>> import keras
    >>> size = IndependentNormal.params_size([2])
    >>> model = keras.Sequential([keras.layers.Dense(size), IndependentNormal([2])])
    >>> model(keras.ops.ones((5, 3))).event_shape
    TensorShape([2])
    """

    family = tfd.Normal


@_register
class IndependentPoisson(_Independent):
    """Independent Poisson variables of `prod(event_shape)` log rates."""

    @staticmethod
    def new(
        params: Tensor,
        event_shape: Shape = (),
        validate_args: bool = False,
        name: str | None = None,
    ) -> Distribution:
        """Returns the distribution of a tensor of parameters."""
        params = tf.convert_to_tensor(params, name="params")
        poisson = tfd.Poisson(
            log_rate=with_event_shape(params, event_shape), validate_args=validate_args
        )
        return _independent(poisson, event_shape, validate_args)


def _independent(
    base: Distribution, event_shape: Shape, validate_args: bool
) -> Distribution:
    return tfd.Independent(
        base,
        reinterpreted_batch_ndims=tf.size(as_vector(event_shape)),
        validate_args=validate_args,
    )
