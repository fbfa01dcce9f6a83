"""Predictions with as many digits as they deserve."""

import re

import numpy as np
import pyarrow as pa

# Of standard deviations and probabilities. More are noise of the draws.
_DIGITS = 5
# In the units of the target: as precise as its standard deviation.
_OF_TARGET = re.compile(r"(mean|lower|upper|quantile|sample)(_[-\d.e]+)*")
_MOST_DECIMALS = 300


def with_sensible_digits(table: pa.Table) -> pa.Table:
    """Rounds predictions for people to read.

    Means and bounds of intervals are rounded to a ten-thousandth of the order of
    the row's standard deviation, all other numbers to five significant digits.

    Example:

    >>> table = pa.table({"mean": [152.133484], "std": [54.123456]})
    >>> with_sensible_digits(table).to_pylist()
    [{'mean': 152.133, 'std': 54.123}]
    """
    columns = {}
    for name in table.column_names:
        column = table[name]
        if not pa.types.is_floating(column.type):
            columns[name] = column
            continue
        values = column.to_numpy().astype(np.float64)
        sizes = values
        if _OF_TARGET.fullmatch(name):
            sizes = _deviations(table, name)
        elif name.startswith("probability_"):
            # 0.99987 has two digits that matter.
            sizes = np.minimum(values, 1.0 - values)
        rounded = _rounded(values, np.abs(sizes))
        columns[name] = pa.array(rounded, from_pandas=True)
    return pa.table(columns)


def _deviations(table: pa.Table, name: str) -> np.ndarray:
    """Returns the standard deviations of the target that a column is of."""
    of_one = f"std_{name.rpartition('_')[2]}"
    own = of_one if of_one in table.column_names else "std"
    return np.asarray(table[own].to_numpy())


def _rounded(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Rounds each value to five significant digits of its size."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        orders = np.floor(np.log10(sizes.astype(np.float64)))
        has_size = np.isfinite(orders)
        decimals = np.where(has_size, _DIGITS - 1 - orders, 0.0)
        decimals = np.clip(decimals, -_MOST_DECIMALS, _MOST_DECIMALS)
        tens = 10.0 ** np.abs(decimals)
        # Powers of ten are exact to 1e22, so that the quotient has the fewest digits.
        up, down = decimals >= 0, decimals < 0
        rounded = np.where(up, np.round(values * tens) / tens, values)
        rounded = np.where(down, np.round(values / tens) * tens, rounded)
    return np.where(has_size & np.isfinite(rounded), rounded, values)
