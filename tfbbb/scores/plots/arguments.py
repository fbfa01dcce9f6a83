"""The arguments of plots: their description, and their data as arrays.

Args:
    prediction: A `tfbbb.Predictive` of n rows.
    y: True values `[n]`, or `[n, k]` for k targets; for classes their indices or
        one-hot rows.
    x: The input `[n]`, usually a grid, in any order.
    data: Inputs `[m]` and targets `[m]` (or `[m, k]`) to plot as dots.
    history: The result of `BayesianModel.fit`, or its `history` dictionary.
    by: One or several of `"entropy"`, `"mutual_information"`, `"epistemic"`,
        `"aleatoric"` and `"variance"`. Defaults to the entropy for classes and to the
        variance for numbers.
    bins: Number of bins from 0 to 1.
    level: Probability of the intervals.
    confidence: Probability of the band of chance.
    target: Index of the target to plot.
    xlabel: Name and units of the horizontal axis.
    label: Name and units of the vertical axis.
    axes: Axes to draw on; a new figure by default.

Returns:
    The axes.

Raises:
    ValueError: The prediction is of another kind; arrays differ in length, are empty or
        are not finite; or an option is out of its range.
"""

import numpy as np
import numpy.typing as npt

from tfbbb.base.documented_arguments import shared_arguments
from tfbbb.base.types import ArrayLike

with_arguments = shared_arguments(__doc__)


def check_prediction(prediction: object) -> None:
    """Checks that `prediction` is that of a model or of a loaded export."""
    if not hasattr(prediction, "aleatoric"):
        raise ValueError(
            "`prediction` must be a `tfbbb.Predictive`. "
            f"Received: prediction of type {type(prediction).__name__}"
        )


def check_of_numbers(prediction: object) -> None:
    """Checks that `prediction` is a `tfbbb.Predictive` of numbers."""
    check_prediction(prediction)
    if hasattr(prediction, "probabilities"):
        raise ValueError(
            "Classes have no mean to plot; use `tfbbb.plots.reliability_diagram`. "
            f"Received: {prediction!r}"
        )


def vector(name: str, values: npt.ArrayLike) -> np.ndarray:
    """Returns `values`, the argument `name`, as an array [n] of finite numbers.

    Also accepts a column [n, 1].
    """
    array = np.asarray(values, dtype=float)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or not array.size:
        raise ValueError(
            f"`{name}` must be an array of shape [n] with n > 0. "
            f"Received: {name} of shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise ValueError(
            f"`{name}` must be finite numbers; drop other values first. "
            f"Received: {(~np.isfinite(array)).sum()} of {array.size} that are not"
        )
    return array


def column(name: str, values: ArrayLike, target: int) -> np.ndarray:
    """Returns the values [n] of one target, from [n, k], or from [n] for one target."""
    array = np.asarray(values, dtype=float)
    if array.ndim == 1:
        array = array[:, np.newaxis]
    is_index = isinstance(target, int) and not isinstance(target, bool)
    if array.ndim == 2 and not (is_index and 0 <= target < array.shape[1]):
        raise ValueError(
            f"`target` must be the index of one of {array.shape[1]} targets. "
            f"Received: target={target!r}"
        )
    return vector(name, array[:, target] if array.ndim == 2 else array)


def check_same_length(**arrays: np.ndarray) -> None:
    """Checks that arrays [n] have one value for each row."""
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        names = ", ".join(f"`{name}`" for name in lengths)
        raise ValueError(
            f"{names} must have one value for each row. Received: lengths {lengths}"
        )
