"""The step between the possible values of a target."""

import numpy as np

# A step of this part of the standard deviation, or less, changes no noise.
_LEAST = 1e-4
_DECIMALS = range(-6, 7)
# Targets have single precision.
_RELATIVE_ERROR = 2.0**-22


def target_resolution(targets: np.ndarray) -> float | None:
    """Returns the greatest step r with `y = y_0 + r * integer` for all targets.

    Args:
        targets: Targets, [n, 1], in single precision. They count as decimal numbers.

    Returns:
        The step, 1 for whole numbers; None if it is below 1/10 000 of the standard
        deviation of the targets, or if they have no common step.
    """
    values = np.asarray(targets, np.float64).reshape(-1)
    least = _LEAST * values.std()
    for decimals in _DECIMALS:
        step = 10.0**-decimals
        if step < least:
            return None
        numbers = values / step
        whole = np.round(numbers)
        if np.all(np.abs(numbers - whole) <= np.abs(numbers) * _RELATIVE_ERROR):
            steps = (whole - whole.min()).astype(np.int64)
            step *= float(np.gcd.reduce(steps))
            return step if step > least else None
    return None
