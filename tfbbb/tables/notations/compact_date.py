"""Finds dates that are plain numbers: 20220331, 202203, 20220331140509."""

import numpy as np

from tfbbb.tables.notations.date import DateNotation, Order

_SAMPLE = 1000
_FEWEST, _FEWEST_MONTHS = 3, 6
_ORDERS: tuple[Order, ...] = ("year-first", "month-first", "day-first")
# Of dates that name a month or a time of day.
_FIRST_YEAR, _LAST_YEAR = 1900, 2100


def find_compact_dates(numbers: np.ndarray) -> tuple[DateNotation, str] | None:
    """Finds how all numbers are days of the calendar, months, or days with a time.

    Example:
    >>> find_compact_dates(np.array([20220331.0, 20220401.0, 20230401.0]))[0].order
    'year-first'
    >>> find_compact_dates(np.array([20220331.0, 20220400.0, 20230401.0]))
    """
    if not len(numbers):
        return None
    low, high = float(numbers.min()), float(numbers.max())
    candidates: list[DateNotation] = []
    fewest = _FEWEST
    if are_months(low, high):
        candidates, fewest = [DateNotation(epoch="digits")], _FEWEST_MONTHS
    elif low >= 1_011_800 and high < 10**8:
        candidates = [DateNotation(order, epoch="digits") for order in _ORDERS]
    elif _are_in_years(low, high, 10**8) or _are_in_years(low, high, 10**10):
        candidates = [DateNotation(epoch="digits-with-time")]
    fitting = []
    for notation in candidates:
        if np.isnan(notation.seconds(numbers[:_SAMPLE])).any():
            continue
        seconds = notation.seconds(numbers)
        if not np.isnan(seconds).any() and _differ(seconds, fewest):
            fitting.append(notation)
    if not fitting:
        return None
    chosen = fitting[0]
    shown = f"{numbers[0]:.0f}"
    what = "months" if are_months(low, high) else "dates"
    remark = (
        f"its numbers, such as {shown}, are read as {what}, "
        f"{chosen.order.replace('-', ' ')}; number overrules this"
    )
    if len(fitting) > 1:
        remark += f", and date:{fitting[1].order} reads another order"
    return chosen, remark


def are_months(low: float, high: float) -> bool:
    """Whether numbers in this range may be a year and a month, as 202203.

    Example:
    >>> are_months(199901, 202203), are_months(20220301, 20220331)
    (True, False)
    """
    return _are_in_years(low, high, 100)


def _are_in_years(low: float, high: float, units: int) -> bool:
    """Whether the numbers begin with a year, of which so many units are a year."""
    return _FIRST_YEAR * units <= low and high < (_LAST_YEAR + 1) * units


def _differ(seconds: np.ndarray, fewest: int) -> bool:
    """Whether dates are several, and not of the same day of the same month.

    Dates with a time differ by it.
    """
    if (seconds % 86400).any():
        return len(np.unique(seconds)) >= fewest
    days = np.unique(seconds // 86400).astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    in_year = months.astype(int) % 12 * 32 + (days - months).astype(int)
    return len(days) >= fewest and len(np.unique(in_year)) > 1
