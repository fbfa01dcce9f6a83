"""A layer whose output is a distribution."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Self

import keras
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.types import Config, Distribution, Json, Options, Tensor, TensorFunction
from tfbbb.lab.compat.tfp_layers.adopted_variable import (
    adopt,
    variables_of,
    warn_of_others,
)
from tfbbb.lab.compat.tfp_layers.distribution_tensor import DistributionTensor
from tfbbb.lab.compat.tfp_layers.full_precision import full_precision
from tfbbb.lab.compat.tfp_layers.function_config import (
    activity_regularizer_config,
    from_config,
    to_config,
)

tfd = tfp.distributions

_BY_NAME = {
    name: getattr(tfd.Distribution, name)
    for name in ("sample", "mean", "mode", "stddev", "variance")
}


@keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")
class DistributionLambda(keras.Layer):
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
        **kwargs: Options of `keras.Layer`, and `arguments`: a dictionary of further
            arguments of `make_distribution_fn`.

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
        self._arguments = kwargs.pop("arguments", None) or {}
        super().__init__(dtype=full_precision(kwargs.pop("dtype", None)), **kwargs)
        self._make_distribution_fn = make_distribution_fn
        self._convert_to_tensor_fn = _conversion(convert_to_tensor_fn)
        self._makes_input: Callable[[Tensor], Tensor] | None = None
        self._made_distribution = False
        # XLA on CPUs draws random numbers slowly, and not from every distribution.
        self.supports_jit = False
        adopt(self, getattr(self.activity_regularizer, "variables", ()))
        # A layer among the attributes is trained with this one.
        self._prior = getattr(self.activity_regularizer, "distribution_b", None)

    def call(self, inputs: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        make_input, self._makes_input = self._makes_input, None
        if make_input is not None:
            # The layer before may be this one.
            inputs = make_input(inputs)
            self._makes_input = make_input
        new: list[tf.Variable] = []
        with _collect_new_variables(new), tf.GradientTape() as tape:
            distribution = self._make_distribution_fn(
                inputs, *args, **{**self._arguments, **kwargs}
            )
        if not isinstance(distribution, tfd.Distribution):
            raise TypeError(
                "`make_distribution_fn` must return a "
                f"`tfp.distributions.Distribution`. Received: {distribution!r}"
            )
        if not isinstance(distribution.dtype, tf.DType):
            raise TypeError(
                "The output of a layer must be a distribution of one tensor, not a "
                f"joint one of several. Received: {distribution!r}"
            )
        # A scale or a prior that is a `tf.Variable` is trained with the model.
        variables = variables_of(distribution)
        untrainable = [v for v in variables if any(v is made for made in new)]
        if self._made_distribution and untrainable:
            raise ValueError(
                "`make_distribution_fn` must not create variables in every call: they "
                "would never be trained. Create them once, outside of the function. "
                f"Received: new variables {[v.name for v in untrainable]}"
            )
        self._made_distribution = True
        adopt(self, variables)
        warn_of_others(self, tape.watched_variables())
        if self._convert_to_tensor_fn is None:
            raise NotImplementedError(
                "The distribution must be convertible to a tensor: pass a name or a "
                "function. "
                "Received: convert_to_tensor_fn=None"
            )
        value = self._convert_to_tensor_fn(distribution)
        value = tf.convert_to_tensor(value, dtype_hint=distribution.dtype)
        return DistributionTensor(distribution, value)

    def compute_output_spec(self, inputs: Tensor, *args: Any, **kwargs: Any) -> Any:
        # Before data flow, Keras passes shapes from layer to layer. A layer whose input
        # is a distribution makes it itself then, of the input of the layers before.
        start, make = getattr(inputs, "made_of", (inputs, None))
        self._makes_input = make
        try:
            spec = super().compute_output_spec(start, *args, **kwargs)
        finally:
            self._makes_input = None

        def make_output(tensor: Tensor) -> DistributionTensor:
            return self.call(make(tensor) if make else tensor, *args, **kwargs)

        spec.made_of = start, make_output
        return spec

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            **self._serialized_conversion(),
            **self._serialized_arguments(),
            "make_distribution_fn": to_config(self._make_distribution_fn),
        }

    def _serialized_conversion(self) -> Options:
        function = _serialized(self._convert_to_tensor_fn)
        return {"convert_to_tensor_fn": function, **activity_regularizer_config(self)}

    def _serialized_arguments(self) -> Options:
        if not self._arguments:
            return {}
        return {"arguments": keras.saving.serialize_keras_object(self._arguments)}

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(**{key: _read(value) for key, value in config.items()})


@contextlib.contextmanager
def _collect_new_variables(new: list[tf.Variable]) -> Iterator[None]:
    def create(next_creator: Any, **options: Any) -> tf.Variable:
        new.append(next_creator(**options))
        return new[-1]

    with tf.variable_creator_scope(create):
        yield


def _read(value: Any) -> Any:
    return from_config(value) if isinstance(value, dict) else value


def _conversion(identifier: Any) -> TensorFunction | None:
    """Returns the function for a name, a configuration, a property or a function."""
    if identifier is None:
        return None
    if isinstance(identifier, str):
        if identifier not in _BY_NAME:
            raise ValueError(
                f"`convert_to_tensor_fn` must be one of {sorted(_BY_NAME)} or a "
                "function of the distribution. "
                f"Received: convert_to_tensor_fn={identifier!r}"
            )
        return _BY_NAME[identifier]
    if isinstance(identifier, dict):
        identifier = from_config(identifier)
    if isinstance(identifier, property):
        identifier = identifier.fget
    if not callable(identifier):
        raise ValueError(
            "`convert_to_tensor_fn` must be a name or a function of the "
            f"distribution. Received: convert_to_tensor_fn={identifier!r}"
        )
    return identifier


def _serialized(function: TensorFunction | None) -> Json:
    """Returns the name of a statistic, or the configuration of another function."""
    for name, statistic in _BY_NAME.items():
        if function is statistic:
            return name
    return to_config(function)
