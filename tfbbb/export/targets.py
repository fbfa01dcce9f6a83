"""Validates targets for the answers of an exported model."""

from collections.abc import Sequence

import numpy as np

from tfbbb.base.types import ArrayLike
from tfbbb.bayes.target_shape import target_width
from tfbbb.export.manifest import Targets


def checked_targets(
    targets: ArrayLike, wanted: Targets, classes: Sequence[str] | None
) -> np.ndarray:
    """Returns targets in the shape and type that the model's functions take.

    Numbers are in raw units, [rows, ..., k] (or [rows] for one target); of classes they
    are indices, or one-hot rows.
    """
    values = np.asarray(targets)
    if classes is None:
        return _numbers(values, wanted)
    return _indices(values, wanted.shape, len(classes))


def class_name(value: str | float) -> str:
    """Returns the name of the class that a value of a table stands for."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return f"{value:.15g}"


def _numbers(values: np.ndarray, wanted: Targets) -> np.ndarray:
    *places, num_targets = wanted.shape
    assert num_targets is not None
    if target_width(values.shape, places, (num_targets,)) is None:
        values = values[..., np.newaxis]
    numbers = values.astype(np.float64)
    assert wanted.support is not None
    inside = wanted.support.contains(numbers)
    _check_rows(inside, values, f"must be {wanted.support.description}")
    return numbers


def _indices(
    values: np.ndarray, shape: Sequence[int | None], num_classes: int
) -> np.ndarray:
    wanted = f"must be class indices 0 to {num_classes - 1}, or one-hot rows"
    width = target_width(values.shape, shape, (1, num_classes))
    if width == num_classes:
        one_hot = np.isin(values, (0, 1)).all(-1) & (values.sum(-1) == 1)
        _check_rows(one_hot, values, wanted)
        return values.argmax(axis=-1).astype(np.int32)
    if width == 1:
        values = values[..., 0]
    _check_rows(np.isin(values, np.arange(num_classes)), values, wanted)
    return values.astype(np.int32)


def _check_rows(valid: np.ndarray, values: np.ndarray, wanted: str) -> None:
    of_rows = valid.reshape(len(values), -1).all(axis=1)
    if not of_rows.all():
        row = int(np.argmin(of_rows))
        raise ValueError(
            f"The targets {wanted}. Received: {values[row].tolist()} in row {row}"
        )
