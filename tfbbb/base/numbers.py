"""Checks of arguments, and conversions that keep the number."""

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    import numpy as np


def is_finite_number(value: object) -> TypeGuard[float]:
    """Returns whether `value` is a finite real number; booleans are not numbers."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    return math.isfinite(value)


def positive_number(name: str, value: object) -> float:
    """Returns `value`, the argument `name`, as a Python number."""
    if not (is_finite_number(value) and value > 0):
        raise ValueError(
            f"`{name}` must be a positive finite number. Received: {name}={value!r}"
        )
    return int(value) if isinstance(value, Integral) else float(value)


def fraction(name: str, value: object) -> float:
    """Returns `value`, or raises ValueError if it is not at least 0 and below 1."""
    if not (is_finite_number(value) and 0.0 <= value < 1.0):
        raise ValueError(
            f"`{name}` must be at least 0 and below 1. Received: {name}={value!r}"
        )
    return float(value)


def choice(name: str, value: Any, choices: Iterable[str]) -> Any:
    """Returns `value`, the argument `name`, or raises ValueError if it is no choice."""
    if value not in choices:
        known = ", ".join(f"'{choice}'" for choice in choices)
        raise ValueError(f"`{name}` must be one of {known}. Received: {name}={value!r}")
    return value


def int32(name: str, value: object, least: int = -(2**31)) -> int:
    """Returns `value`, the argument `name`, as a Python integer."""
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


def in_dtype(
    values: "np.ndarray", dtype: str
) -> tuple["np.ndarray", "np.ndarray | None"]:
    """Returns numbers in another data type, and whether it cannot hold each of them.

    Floats are rounded to the nearest one. An integer or a boolean type holds a number
    only if their values are equal.
    """
    # The service checks numbers without NumPy, and starts sooner.
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        converted = values.astype(dtype, copy=False)
    if converted.dtype == values.dtype or np.dtype(dtype).kind not in "biu":
        return converted, None
    wrong = converted != values
    if values.dtype.kind == "f" and np.dtype(dtype).kind != "b":
        # A conversion of floats beyond the type may end at its greatest integer, which
        # rounds to the same float.
        wrong |= values >= float(np.iinfo(dtype).max) + 1.0
    return converted, wrong
