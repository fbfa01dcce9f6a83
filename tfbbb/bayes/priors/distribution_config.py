"""Distributions of TensorFlow Probability as JSON: by class and arguments."""

from __future__ import annotations

import inspect
from typing import Any

from tfbbb.base.lazy import np, tf


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
