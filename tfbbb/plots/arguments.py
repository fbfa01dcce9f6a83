"""The checks that what is drawn passes."""

from typing import Any

import numpy as np
import numpy.typing as npt

from tfbbb.checked_numbers import is_finite_number


def is_prediction(value: Any) -> bool:
    """Returns whether `value` is a `tfbbb.Predictive`, of a live or a loaded model."""
    return hasattr(value, "aleatoric")


def check_prediction(prediction: Any) -> None:
    """Checks that `prediction` is a `tfbbb.Predictive`.

    Raises:
        ValueError: Where it is something else.
    """
    if not is_prediction(prediction):
        raise ValueError(
            "`prediction` must be a `tfbbb.Predictive`. "
            f"Received: prediction of type {type(prediction).__name__}"
        )


def check_of_numbers(prediction: Any) -> None:
    """Checks that `prediction`, a `tfbbb.Predictive`, is not of classes.

    Raises:
        ValueError: Where it is: the mean of a class is no class.
    """
    if hasattr(prediction, "probabilities"):
        raise ValueError(
            "Classes have no mean that could be drawn among them; draw them by "
            f"`tfbbb.plots.reliability_diagram`. Received: {prediction!r}"
        )


def vector(name: str, values: npt.ArrayLike) -> np.ndarray:
    """Returns `values`, the argument `name`, as an array [n] of finite numbers.

    A column [n, 1] is taken for [n].

    Raises:
        ValueError: Where they are of another shape, none, or not all finite.
    """
    array = np.asarray(values, dtype=float)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or not array.size:
        raise ValueError(
            f"`{name}` must be an array of shape [n], not empty. "
            f"Received: {name} of shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise ValueError(
            f"`{name}` must be finite numbers; leave out the others first. "
            f"Received: {(~np.isfinite(array)).sum()} of {array.size} that are not"
        )
    return array


def column(name: str, values: Any, target: int) -> np.ndarray:
    """Returns one target's values [n] of [n, k], or of [n] where there is one target.

    Raises:
        ValueError: Where there is no such target, or as for `vector`.
    """
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
    """Checks that arrays [n] have one value for each row.

    Raises:
        ValueError: Where their lengths differ.
    """
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        names = ", ".join(f"`{name}`" for name in lengths)
        raise ValueError(
            f"{names} must have one value for each row. Received: lengths {lengths}"
        )


def checked_level(name: str, level: float) -> float:
    """Returns `level`, the argument `name`.

    Raises:
        ValueError: Where it is no probability strictly between 0 and 1.
    """
    if not (is_finite_number(level) and 0.0 < level < 1.0):
        raise ValueError(
            f"`{name}` must be a number strictly between 0 and 1. "
            f"Received: {name}={level!r}"
        )
    return level
