"""A layer whose output is a distribution."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.types import Config, Distribution, Options, Tensor, TensorFunction
from tfbbb.lab.compat.tfp_layers.adopted_variable import (
    adopt,
    variables_of,
    warn_of_others,
)
from tfbbb.lab.compat.tfp_layers.distribution_tensor import DistributionTensor
from tfbbb.lab.compat.tfp_layers.function_config import (
    ReadsConfig,
    activity_regularizer_config,
    full_precision,
    to_config,
)

tfd = tfp.distributions

_BY_NAME = {
    name: getattr(tfd.Distribution, name)
    for name in ("sample", "mean", "mode", "stddev", "variance")
}


@keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")
class DistributionLambda(ReadsConfig, keras.Layer):
    """Returns a distribution, computed by a function of the layer's input.

    `output ~ make_distribution_fn(inputs)`

    The output is a `tfp.distributions.Distribution`; the layers after it, metrics and
    `predict` see the tensor `convert_to_tensor_fn(distribution)`, by default a sample.

    Example:

    >>> import keras, tensorflow as tf, tensorflow_probability as tfp
    >>> model = keras.Sequential([
    ...     keras.layers.Dense(2, kernel_initializer="zeros"),
    ...     DistributionLambda(lambda t: tfp.distributions.Normal(
    ...         loc=t[..., :1], scale=tf.nn.softplus(t[..., 1:]))),
    ... ])
    >>> model.compile("adam", loss=lambda y, d: -d.log_prob(y))
    >>> model(tf.ones([1, 3])).stddev().numpy()
    array([[0.6931]], dtype=float32)

    Args:
        make_distribution_fn: Function of the inputs that returns a distribution. The
            layer trains and saves each `tf.Variable` that the distribution holds,
            alone or in a `tfp.util.TransformedVariable` or `DeferredTensor`. It warns
            of others that the function reads, as in `tf.nn.softplus(variable)`.
        convert_to_tensor_fn: Function that converts the distribution to a tensor, or
            one of the names `"sample"`, `"mean"`, `"mode"`, `"stddev"`, `"variance"`.
        **kwargs: Options of `keras.Layer`.

    Raises:
        TypeError: The function does not return a distribution of one tensor.
        ValueError: `convert_to_tensor_fn` is neither a name nor a function, or
            `make_distribution_fn` creates variables in every call.
    """

    def __init__(
        self,
        make_distribution_fn: Callable[..., Distribution],
        convert_to_tensor_fn: TensorFunction | str = tfd.Distribution.sample,
        **kwargs: Any,
    ):
        super().__init__(dtype=full_precision(kwargs.pop("dtype", None)), **kwargs)
        self._make_distribution_fn = make_distribution_fn
        self._convert_to_tensor_fn = _conversion(convert_to_tensor_fn)
        self._made_distribution = False
        # XLA on CPUs draws random numbers slowly, and not from every distribution.
        self.supports_jit = False
        prior = getattr(self.activity_regularizer, "distribution_b", None)
        adopt(self, variables_of(prior))

    def call(self, inputs: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        with tf.GradientTape() as tape:
            distribution = self._make_distribution_fn(inputs, *args, **kwargs)
        if not isinstance(distribution, tfd.Distribution) or not isinstance(
            distribution.dtype, tf.DType
        ):
            raise TypeError(
                "`make_distribution_fn` must return a `tfp.distributions.Distribution` "
                f"of one tensor. Received: {distribution!r}"
            )
        # A scale or a prior that is a `tf.Variable` is trained with the model.
        new = adopt(self, variables_of(distribution))
        if self._made_distribution and new:
            raise ValueError(
                "`make_distribution_fn` must not create variables in every call: they "
                "would never be trained. Create them once, outside of the function. "
                f"Received: new variables {[v.name for v in new]}"
            )
        self._made_distribution = True
        warn_of_others(self, tape.watched_variables())
        value = self._convert_to_tensor_fn(distribution)
        value = tf.convert_to_tensor(value, dtype_hint=distribution.dtype)
        return DistributionTensor(distribution, value)

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            **self._conversion_config(),
            "make_distribution_fn": to_config(self._make_distribution_fn),
        }

    def _conversion_config(self) -> Options:
        function = self._convert_to_tensor_fn
        names = [name for name, known in _BY_NAME.items() if known is function]
        return {
            "convert_to_tensor_fn": names[0] if names else to_config(function),
            **activity_regularizer_config(self),
        }


def _conversion(identifier: Any) -> TensorFunction:
    """Returns the function for a name, a property or a function."""
    if isinstance(identifier, property):
        identifier = identifier.fget
    if isinstance(identifier, str):
        identifier = _BY_NAME.get(identifier, identifier)
    if not callable(identifier):
        raise ValueError(
            f"`convert_to_tensor_fn` must be one of {sorted(_BY_NAME)} or a function "
            f"of the distribution. Received: convert_to_tensor_fn={identifier!r}"
        )
    return identifier
