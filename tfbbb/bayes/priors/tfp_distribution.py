"""Any distribution of TensorFlow Probability as a prior."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tfbbb.base.lazy import keras, np, tf
from tfbbb.base.strategy import saved_as
from tfbbb.base.types import Config, Distribution, Tensor
from tfbbb.bayes.posteriors.posterior import Sizes, sum_over_weights
from tfbbb.bayes.priors.prior import AddWeight, Parameters, Prior


@saved_as("tfbbb.priors")
class TFPDistribution(Prior):
    """A distribution of TensorFlow Probability: `p(w) = distribution`.

    The distribution's event covers the last axes of a weight. Its batch broadcasts to
    the other axes, along which the weights are independent, so a scalar distribution
    suits every weight. The KL divergence uses TFP's closed form if there is one.

    Example:

    >>> import tfbbb
    >>> import tensorflow_probability as tfp
    >>> prior = tfp.distributions.Laplace(0.0, 1.0)
    >>> layer = tfbbb.layers.DenseVariational(4, prior=prior)

    Args:
        distribution: A `tfp.distributions.Distribution` of dtype float32, or a function
            `(shape, fan_in)` that returns one. A model with a distribution is saved by
            the distribution's class and arguments, one with a function by its name,
            which must be registered (`keras.saving.register_keras_serializable`).
    """

    def __init__(self, distribution: Distribution):
        if not (_is_distribution(distribution) or callable(distribution)):
            raise ValueError(
                "`distribution` must be a distribution of TensorFlow Probability or a "
                "function `(shape, fan_in)` that returns one. "
                f"Received: distribution={distribution!r}"
            )
        if not _is_distribution(distribution):
            _check_arguments(distribution)
        self._made_from: Any | Callable[..., Any] = distribution

    def get_config(self) -> Config:
        if _is_distribution(self._made_from):
            return {"distribution": to_config(self._made_from)}
        function = keras.saving.serialize_keras_object(self._made_from)
        return {"distribution": {"function": function}}

    @classmethod
    def from_config(cls, config: Config) -> TFPDistribution:
        encoded = config["distribution"]
        if "function" in encoded:
            return cls(keras.saving.deserialize_keras_object(encoded["function"]))
        return cls(from_config(encoded))

    def __repr__(self) -> str:
        return f"TFPDistribution({self._made_from!r})"

    def distribution(self, shape: Sizes, fan_in: int) -> Distribution:
        """Returns p(w) as the distribution of TFP."""
        if _is_distribution(self._made_from):
            return self._made_from
        made = self._made_from(shape, fan_in)
        if not _is_distribution(made):
            raise ValueError(
                "The function must return a distribution of TensorFlow Probability. "
                f"Received: {made!r} from distribution={self._made_from!r}"
            )
        return made

    def add_variables(
        self, add_weight: AddWeight, shape: Sizes, fan_in: int, path: str
    ) -> dict[str, keras.Variable]:
        distribution = self.distribution(shape, fan_in)
        event = tuple(distribution.event_shape)
        batch = tuple(distribution.batch_shape)
        outer = shape[: len(shape) - len(event)]
        if event != shape[len(outer) :] or not _broadcasts_to(batch, outer):
            raise ValueError(
                f"The prior's event {event} must be the last axes of the weight and "
                f"its batch {batch} broadcast to the others. "
                f"Received: {path!r} of shape {shape}, prior={self!r}"
            )
        if distribution.dtype != tf.float32:
            raise ValueError(
                "The prior must be a distribution over float32 numbers. "
                f"Received: prior={self!r} of {distribution.dtype}"
            )
        if distribution.trainable_variables:
            raise ValueError(
                "A distribution as a prior is fixed, and its variables would not be "
                "trained. Pass numbers or tensors, or a prior that learns, such as "
                "`tfbbb.priors.Normal(trainable=True)`. "
                f"Received: prior={self!r} with {distribution.trainable_variables}"
            )
        return {}

    def log_prob(
        self, parameters: Parameters, weights: Tensor, shape: Sizes, fan_in: int
    ) -> Tensor:
        distribution = self.distribution(shape, fan_in)
        batch_axes = shape[: len(shape) - len(distribution.event_shape)]
        return sum_over_weights(distribution.log_prob(weights), batch_axes)


def _is_distribution(value: Any) -> bool:
    # By an attribute: importing TensorFlow Probability would take seconds.
    return not inspect.isclass(value) and all(
        hasattr(value, name) for name in ("event_shape", "batch_shape", "log_prob")
    )


def _check_arguments(function: Callable[..., Any]) -> None:
    try:
        inspect.signature(function).bind((), 1)
    except TypeError as error:
        raise ValueError(
            "A function that makes a prior must accept two arguments, "
            f"`(shape, fan_in)` ({error}). "
            f"Received: distribution={function!r}"
        ) from None


def _broadcasts_to(batch: Sizes, shape: Sizes) -> bool:
    try:
        return np.broadcast_shapes(batch, shape) == shape
    except ValueError:
        return False


def to_config(value: Any) -> Any:
    """Returns a distribution as JSON: its class and its arguments."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [to_config(item) for item in value]
    for module, base in _libraries():
        name = type(value).__name__
        if isinstance(value, base) and getattr(module, name, None) is type(value):
            return {"name": name, "kind": base.__name__, "arguments": _arguments(value)}
    if isinstance(value, tf.DType):
        return {"dtype": value.name}
    if tf.is_tensor(value) or isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return {"array": array.tolist(), "dtype": str(array.dtype)}
    raise ValueError(
        "The prior cannot be saved: it, or an argument of it, is not a number, array, "
        "distribution or bijector of TFP. Pass a registered function "
        f"`(shape, fan_in)` that returns the distribution instead. Received: {value!r}"
    )


def _arguments(made: Any) -> dict[str, Any]:
    """Returns the encoded arguments that a distribution or bijector was made of."""
    # The signature of the class is the one of TFP's wrapper, without names.
    defaults = inspect.signature(type(made).__init__).parameters
    return {
        name: to_config(value)
        for name, value in made.parameters.items()
        if name not in defaults or defaults[name].default is not value
    }


def from_config(value: Any) -> Any:
    """Returns the distribution of a configuration that `to_config` returned."""
    if isinstance(value, list):
        return [from_config(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.asarray(value["array"], value["dtype"])
    if "dtype" in value:
        return tf.as_dtype(value["dtype"])
    for module, base in _libraries():
        made = getattr(module, value["name"], None)
        if (
            value["kind"] == base.__name__
            and inspect.isclass(made)
            and issubclass(made, base)
        ):
            return made(**{k: from_config(v) for k, v in value["arguments"].items()})
    raise ValueError(
        "The config of the prior names no distribution or bijector of TensorFlow "
        f"Probability. Received: {value!r}"
    )


def _libraries() -> list[tuple[Any, type]]:
    """Returns the modules whose objects are saved by name, and their base classes."""
    import tensorflow_probability as tfp

    return [
        (tfp.distributions, tfp.distributions.Distribution),
        (tfp.bijectors, tfp.bijectors.Bijector),
    ]
