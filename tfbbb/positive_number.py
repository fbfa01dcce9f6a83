"""The check that numbers pass which say how large something is."""

import math
from numbers import Integral, Real
from typing import Any


def positive_number(name: str, value: Any) -> float:
    """Returns `value`, the argument `name`, as a number of Python.

    Raises:
        ValueError: Where it is no number (truth values are none), or not positive, or
            not finite.
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and value > 0):
        raise ValueError(
            f"`{name}` must be a positive finite number. Received: {name}={value!r}"
        )
    return int(value) if isinstance(value, Integral) else float(value)
