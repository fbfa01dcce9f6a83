"""Amounts: weights, rates, scales."""

import math
import numbers
from typing import Any


def is_finite_number(value: Any) -> bool:
    """Returns whether `value` is a real number, and neither infinite nor NaN."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_number and math.isfinite(value)
