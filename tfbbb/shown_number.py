"""Numbers as people read them."""

import math


def shown_number(value: float, digits: int) -> str:
    """Returns a number with so many significant digits, and all of its whole digits.

    Numbers below 0.0001 and from 10^15 on have an exponent.

    Example:
    >>> shown_number(1234567.8, 4), shown_number(3.0, 4), shown_number(0.12345, 2)
    ('1234568', '3', '0.12')
    """
    size = abs(value)
    if not 1e-4 <= size < 1e15:
        return f"{value:.{digits}g}"
    decimals = max(digits - 1 - math.floor(math.log10(size)), 0)
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text
