"""Functions that convert a distribution to a tensor."""

from typing import Any

import tensorflow_probability as tfp

from tfbbb.base.types import Json, TensorFunction
from tfbbb.lab.compat.tfp_layers.function_config import from_config, to_config

tfd = tfp.distributions

_BY_NAME = {
    name: getattr(tfd.Distribution, name)
    for name in ("sample", "mean", "mode", "stddev", "variance")
}


def get(identifier: Any) -> TensorFunction | None:
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


def serialize(function: TensorFunction | None) -> Json:
    """Returns the name of a statistic, or the configuration of another function."""
    for name, statistic in _BY_NAME.items():
        if function is statistic:
            return name
    return to_config(function)
