"""The probability of an interval."""

from tfbbb.checked_numbers import is_finite_number


def checked_level(level: float) -> float:
    """Returns `level`.

    Raises:
        ValueError: Where it is no number strictly between 0 and 1.
    """
    if not (is_finite_number(level) and 0.0 < level < 1.0):
        raise ValueError(
            "`level` is the probability of an interval and must lie strictly between "
            f"0 and 1. Received: level={level!r}"
        )
    return float(level)
