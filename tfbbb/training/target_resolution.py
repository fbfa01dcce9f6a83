"""The step between the possible values of a target."""

import numpy as np

# A step of this part of the standard deviation, or less, changes no noise.
_LEAST = 1e-4
_DECIMALS = range(-6, 7)
# Of targets in single and in double precision.
_RELATIVE_ERROR, _RELATIVE_ERROR_IN_DOUBLE = 2.0**-22, 2.0**-50


def target_resolution(targets: np.ndarray) -> float | None:
    """Returns the greatest step r with `y = y_0 + r * integer` for all targets."""
    values = np.asarray(targets, np.float64).reshape(-1)
    least = _LEAST * values.std()
    is_single = np.array_equal(values, values.astype(np.float32))
    error = _RELATIVE_ERROR if is_single else _RELATIVE_ERROR_IN_DOUBLE
    for decimals in _DECIMALS:
        step = 10.0**-decimals
        if step < least:
            return None
        numbers = values / step
        whole = np.round(numbers)
        if np.all(np.abs(numbers - whole) <= np.abs(numbers) * error):
            steps = (whole - whole.min()).astype(np.int64)
            step *= float(np.gcd.reduce(steps))
            return step if step > least else None
    return None
