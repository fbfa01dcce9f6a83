"""Finds out whether a target was computed from the columns, as a linear function."""

import shlex
from collections.abc import Sequence

import numpy as np

from tfbbb.judging.evaluation.input_encoding import InputEncoding
from tfbbb.judging.evaluation.predicted_rows import PredictedRows
from tfbbb.judging.types import Inputs

# Of the variance of the target. The penalty of the baseline leaves more.
_MOST_UNEXPLAINED, _MOST_UNEXPLAINED_BY_BASELINE = 1e-9, 1e-3
_FEWEST_ROWS_PER_FEATURE = 2
_MOST_FEATURES, _MOST_ROWS = 300, 20_000
# Of the standard deviation of the target.
_LEAST_CONTRIBUTION = 1e-3
_MOST_NAMED = 8


def is_nearly_exact(linear: PredictedRows, targets: np.ndarray) -> bool:
    """Returns whether a linear baseline predicts numbers [n, 1] nearly exactly."""
    return _unexplained(targets, linear.mean) <= _MOST_UNEXPLAINED_BY_BASELINE


def find_exact_linear_columns(
    encoding: InputEncoding,
    inputs: Inputs,
    targets: np.ndarray,
    measured_inputs: Inputs,
    measured_targets: np.ndarray,
) -> tuple[str, ...]:
    """Returns the columns of which a target is a linear function, up to rounding.

    Fits weights w and a bias b by least squares to some rows. Then 1 - R^2 of other
    rows must be at most 1e-9, so that a formula is more likely than a relation without
    noise.

    Example:

    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> inputs = {name: generator.normal(size=60) for name in "abc"}
    >>> targets = (inputs["a"] - 3 * inputs["c"] + 2)[:, np.newaxis]
    >>> encoding = InputEncoding.fit(inputs)
    >>> find_exact_linear_columns(encoding, inputs, targets, inputs, targets)
    ('c', 'a')
    """
    width, number = encoding.width, len(targets)
    if width > _MOST_FEATURES or number < _FEWEST_ROWS_PER_FEATURE * width:
        return ()
    x = encoding.transform(inputs)[:_MOST_ROWS]
    y = np.asarray(targets, np.float64)[:_MOST_ROWS, 0]
    center = x.mean(axis=0)
    weights = np.linalg.lstsq(x - center, y - y.mean(), rcond=None)[0]
    predicted = y.mean() + (encoding.transform(measured_inputs) - center) @ weights
    if not _unexplained(measured_targets, predicted) <= _MOST_UNEXPLAINED:
        return ()
    contributions = np.abs(weights) * x.std(axis=0) / y.std()
    sizes, first = {}, 0
    for column in encoding.columns:
        part = contributions[first : first + column.width]
        sizes[column.name] = float(part.max(initial=0.0))
        first += column.width
    names = [name for name, size in sizes.items() if size > _LEAST_CONTRIBUTION]
    return tuple(sorted(names, key=lambda name: -sizes[name]))


def describe_exact_linear_columns(names: Sequence[str]) -> str:
    """Returns a sentence on the columns of which the target is a linear function.

    Example:

    >>> describe_exact_linear_columns(["a", "b"])[:55]
    "The target is a linear function of the columns 'a' and "
    """
    *first, last = [repr(name) for name in names[:_MOST_NAMED]]
    if len(names) > _MOST_NAMED:
        shown = f"{', '.join([*first, last])} and {len(names) - _MOST_NAMED} more"
    else:
        shown = f"{', '.join(first)} and {last}" if first else last
    columns, them = ("columns", "them") if len(names) > 1 else ("column", "it")
    options = " ".join(f"--ignore {shlex.quote(name)}" for name in names[:_MOST_NAMED])
    return (
        f"The target is a linear function of the {columns} {shown} in rows left "
        f"out, so it was probably computed from {them}; leave out those that are not "
        f"known before the target is ({options})."
    )


def _unexplained(targets: np.ndarray, predicted: np.ndarray) -> float:
    """Returns 1 - R^2."""
    y = np.asarray(targets, np.float64).reshape(-1)
    total = float(np.square(y - y.mean()).sum())
    error = float(np.square(y - predicted.reshape(-1)).sum())
    return error / total if total > 0.0 else np.inf
