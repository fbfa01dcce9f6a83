"""Finds dates that are plain numbers: 20220331, or 3312022 with the month first."""

import numpy as np

from tfbbb.tables.notations.date import DateNotation, Order

_SAMPLE = 1000
_FEWEST = 3
_ORDERS: tuple[Order, ...] = ("year-first", "month-first", "day-first")


def find_compact_dates(numbers: np.ndarray) -> tuple[DateNotation, str] | None:
    """Finds the order in which all numbers are days of the calendar.

    Args:
        numbers: The numbers `[n]` of a column, without missing ones.

    Returns:
        The notation, and a remark; None if a number is no day from 1800 to 2199, there
        are fewer than three, or all are of the same day or month.

    Example:
    >>> find_compact_dates(np.array([20220331.0, 20220401.0, 20230401.0]))[0].order
    'year-first'
    >>> find_compact_dates(np.array([20220331.0, 20220400.0, 20230401.0]))
    """
    if not len(numbers) or numbers.min() < 1_011_800 or numbers.max() >= 10**8:
        return None
    fitting = []
    for order in _ORDERS:
        notation = DateNotation(order, epoch="digits")
        if np.isnan(notation.seconds(numbers[:_SAMPLE])).any():
            continue
        seconds = notation.seconds(numbers)
        if not np.isnan(seconds).any() and _differ(seconds):
            fitting.append(notation)
    if not fitting:
        return None
    chosen = fitting[0]
    shown = f"{numbers[0]:.0f}"
    remark = (
        f"its numbers, such as {shown}, are read as dates, "
        f"{chosen.order.replace('-', ' ')}; number overrules this"
    )
    if len(fitting) > 1:
        remark += f", and date:{fitting[1].order} reads another order"
    return chosen, remark


def _differ(seconds: np.ndarray) -> bool:
    """Whether dates are several, and not of the same day of the same month."""
    days = np.unique(seconds // 86400).astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    in_year = months.astype(int) % 12 * 32 + (days - months).astype(int)
    return len(days) >= _FEWEST and len(np.unique(in_year)) > 1
