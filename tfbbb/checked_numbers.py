"""Validates numeric arguments."""

import math
from numbers import Integral, Real
from typing import Any


def is_finite_number(value: Any) -> bool:
    """Returns whether `value` is a finite real number; booleans are not numbers."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


def positive_number(name: str, value: Any) -> float:
    """Returns `value`, the argument `name`, as a Python number.

    Raises:
        ValueError: `value` is not a number, not positive, or not finite.
    """
    if not (is_finite_number(value) and value > 0):
        raise ValueError(
            f"`{name}` must be a positive finite number. Received: {name}={value!r}"
        )
    return int(value) if isinstance(value, Integral) else float(value)


def int32(name: str, value: Any, least: int = -(2**31)) -> int:
    """Returns `value`, the argument `name`, as a Python integer.

    Raises:
        ValueError: `value` is not a 32-bit integer, or is below `least`.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"`{name}` must be an integer. Received: {name}={value!r}")
    number = int(value)
    if not least <= number < 2**31:
        raise ValueError(
            f"`{name}` must be at least {least} and below 2**31. "
            f"Received: {name}={value!r}"
        )
    return number


def positive_integer(name: str, value: int) -> int:
    """Returns `value`, or raises ValueError if it is not a positive integer."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(
            f"`{name}` must be a positive integer. Received: {name}={value!r}"
        )
    return value
