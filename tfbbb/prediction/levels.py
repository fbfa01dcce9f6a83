"""Levels of quantiles and intervals."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tfbbb.base.numbers import is_finite_number

if TYPE_CHECKING:
    import numpy as np


def write_as_probability(level: object) -> str:
    """Returns a hint for a percentage in place of a level, or nothing.

    Example:
    >>> [write_as_probability(level) for level in (90, "2.5%", 0.5)]
    [' Write 0.9.', ' Write 0.025.', '']
    """
    text = str(level).strip()
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        return ""
    is_percentage = 1 < percent < 100 or (text.endswith("%") and 0 < percent < 100)
    return f" Write {percent / 100:.10g}." if is_percentage else ""


def refuse_percentage(level: object) -> object:
    """Returns what may be a level."""
    if hint := write_as_probability(level):
        raise ValueError(f"a level is a probability between 0 and 1.{hint}".rstrip("."))
    return level


def checked_levels(levels: float | Sequence[float]) -> "np.ndarray":
    """Returns `levels` as a vector."""
    # The service states its levels without NumPy, and starts sooner.
    import numpy as np

    try:
        values = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        is_right = values.ndim == 1 and values.size
        if is_right and ((values > 0) & (values < 1)).all():
            return values
    except ValueError:  # A text.
        pass
    given = np.ravel(np.asarray(levels, object)).tolist()
    hint = next(filter(None, map(write_as_probability, given)), "")
    raise ValueError(
        f"Levels of quantiles and intervals must lie strictly between 0 and 1.{hint} "
        f"Received: {levels!r}"
    )


def checked_times(times: float | Sequence[float]) -> "np.ndarray":
    """Returns `times`, or other numbers of all rows, as a vector."""
    import numpy as np

    values = np.ravel(np.asarray(times, np.float64))
    if not (values.size and np.isfinite(values).all()):
        raise ValueError(
            "Times must be finite numbers, in the units of the targets. "
            f"Received: {times!r}"
        )
    return values


def explain_infinite(levels: "Sequence[float] | np.ndarray") -> str:
    """Returns why there is no finite conformal interval of the greatest level."""
    level = float(max(levels))
    needed = math.ceil(level / (1.0 - level) - 1e-6)
    return (
        f"A conformal interval of this level takes {needed} held-out rows, more "
        "than it was fitted to; ask for a lower level or for quantiles. "
        f"Received: level={level:.6g}"
    )


def checked_level(level: Any, name: str = "level") -> float:
    """Returns the probability `level` of an interval, or the argument of this name."""
    if not (is_finite_number(level) and 0.0 < level < 1.0):
        raise ValueError(
            f"`{name}` is a probability and must lie strictly between 0 and 1."
            f"{write_as_probability(level)} Received: {name}={level!r}"
        )
    return float(level)
