"""Finds numbers that stand for a missing value, such as -999 and 99999999."""

import numpy as np

# All digits are 9, of which the last may be decimals, as in 999.9.
_WHOLE = [10.0**digits - 1 for digits in range(2, 16)]
_NINES = (*_WHOLE, *(w / 10 for w in _WHOLE[1:]), *(w / 100 for w in _WHOLE[2:]))
_SENTINELS = frozenset(sign * number for number in _NINES for sign in (-1, 1))
# How many ranges of the other values lie between them and the number. -99 and so on
# need none if no other value is negative.
_RANGES, _RANGES_OF_TWO_DIGITS = 5.0, 20.0
_FEWEST, _FEWEST_OTHERS = 2, 5
# One alone must be so far away, unless it is the only negative value.
_RANGES_OF_ONE = 1000.0
_FEWEST_BESIDE_TYPING_ERROR = 20


def find_sentinels(numbers: np.ndarray) -> dict[float, int]:
    """Finds numbers of nines far outside of all others of a column.

    Example:
    >>> find_sentinels(np.array([21.5, 19.0, -999.0, 23.5, 20.0, -999.0, 18.5]))
    {-999.0: 2}
    >>> find_sentinels(np.array([21.0, 99.0, 45.0, 99.0, 8.0, 65.0, 80.0]))
    {}
    """
    counts: dict[float, int] = {}
    while len(numbers) >= _FEWEST_OTHERS:
        low, high = float(numbers.min()), float(numbers.max())
        ends = _SENTINELS.intersection((low, high))
        if not ends:
            return {
                value: count
                for value, count in sorted(counts.items())
                if low < high and _is_sentinel(value, count, low, high)
            }
        for end in ends:
            others = numbers[numbers != end]
            counts[end] = len(numbers) - len(others)
            numbers = others
    return {}


def find_typing_error(numbers: np.ndarray) -> float | None:
    """Finds one number that is far outside of all others, such as 1e12 among weights.

    Example:
    >>> find_typing_error(np.append(np.arange(20.0), 199600.0))
    199600.0
    """
    known = np.sort(numbers[~np.isnan(numbers)])
    if len(known) <= _FEWEST_BESIDE_TYPING_ERROR:
        return None
    for place, others in ((-1, known[:-1]), (0, known[1:])):
        low, high = others[0], others[-1]
        distance = max(low - known[place], known[place] - high)
        if distance > _RANGES_OF_ONE * (high - low) > 0.0:
            return float(known[place])
    return None


def _is_sentinel(value: float, count: int, low: float, high: float) -> bool:
    distance = max(low - value, value - high) / (high - low)
    is_only_negative = value < 0 <= low
    if count < _FEWEST:
        far = _RANGES_OF_TWO_DIGITS if is_only_negative else _RANGES_OF_ONE
        return distance > far
    if is_only_negative:
        return True
    return distance > (_RANGES if abs(value) > 99 else _RANGES_OF_TWO_DIGITS)
