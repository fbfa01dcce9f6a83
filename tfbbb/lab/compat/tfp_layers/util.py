"""The module `tfp.layers.util`, under its own name."""

from collections.abc import Callable
from typing import Any

from tfbbb.base.types import Json
from tfbbb.lab.compat.tfp_layers.default_distributions import (
    default_loc_scale_fn,
    default_mean_field_normal_fn,
    default_multivariate_normal_fn,
)
from tfbbb.lab.compat.tfp_layers.function_config import (
    from_config,
    is_saved_by_keras,
    to_config,
)

__all__ = [
    "default_loc_scale_fn",
    "default_mean_field_normal_fn",
    "default_multivariate_normal_fn",
    "deserialize_function",
    "serialize_function",
]


def serialize_function(func: Callable[..., Any]) -> tuple[Json, str]:
    """Returns a function as JSON, and its type: `"function"` or `"lambda"`.

    A function that is registered with Keras is a `"function"`. Every other one is a
    `"lambda"`: it is pickled with the values that it refers to.

    Example:

    >>> serial, function_type = serialize_function(lambda x: 2 * x)
    >>> function_type
    'lambda'
    >>> deserialize_function(serial, function_type)(3)
    6

    Args:
        func: The function.
    """
    return to_config(func), "function" if is_saved_by_keras(func) else "lambda"


def deserialize_function(serial: Json, function_type: str) -> Any:
    """Returns the function that `serialize_function` returned as JSON.

    Args:
        serial: The function as JSON.
        function_type: Its type: `"function"` or `"lambda"`.

    Raises:
        TypeError: `function_type` is unknown.
        ValueError: `function_type` is `"lambda"`, and Keras loads in safe mode.
    """
    if function_type not in ("function", "lambda"):
        raise TypeError(
            "`function_type` must be 'function' or 'lambda'. "
            f"Received: function_type={function_type!r}"
        )
    return from_config(serial)
