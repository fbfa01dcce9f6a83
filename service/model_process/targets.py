"""Reads the targets of a prediction request."""

import math
from numbers import Real

import numpy as np

from service.shared.json_types import JsonList
from tfbbb.base.texts import abbreviate
from tfbbb.export.manifest import InputError, Manifest
from tfbbb.export.targets import class_name

UNSEEN_TARGET = "The target has the class {}, unseen in training; it has no log_prob."
"""The warning of a row, with its class."""


def read_targets(values: object, manifest: Manifest, num_rows: int) -> np.ndarray:
    """Returns targets as the model takes them: numbers [n, k], or class indices [n].

    The index of a class that training did not have is -1.

    Args:
        values: One target per row: a number, a list of numbers, or the name of a class.
        manifest: Manifest of the model.
        num_rows: Number n of rows.

    Raises:
        InputError: If there is not one valid target per row; names the row.
    """
    if not isinstance(values, list) or len(values) != num_rows:
        size = f"{len(values)} targets" if isinstance(values, list) else "no list"
        raise InputError(
            f"`targets` must be a list with one target for each of the {num_rows} "
            f"rows. Received: {size}"
        )
    if manifest.classes is not None:
        indices = {name: index for index, name in enumerate(manifest.classes)}
        return np.array(
            [_index(value, row, indices) for row, value in enumerate(values, 1)],
            dtype=np.int32,
        )
    rows = [_numbers(value, row, manifest) for row, value in enumerate(values, 1)]
    return np.array(rows, dtype=np.float64)


def _index(value: object, row: int, indices: dict[str, int]) -> int:
    # A list is no class, and has no hash either.
    name = class_name(value) if isinstance(value, str | int | float) else None
    if name is None:
        raise InputError(
            f"Row {row}: the target must be one of the classes "
            f"{abbreviate(list(indices))}. Received: {abbreviate(value)}"
        )
    return indices.get(name, -1)


def _numbers(value: object, row: int, manifest: Manifest) -> list[float]:
    assert manifest.targets is not None
    support = manifest.targets.support
    width = manifest.targets.shape[-1]
    numbers: JsonList = value if isinstance(value, list) else [value]
    assert support is not None
    valid = len(numbers) == width and all(_is_number(x) for x in numbers)
    if not valid or not support.contains(np.asarray(numbers)).all():
        what = "a number" if width == 1 else f"a list of {width} numbers"
        raise InputError(
            f"Row {row}: the target must be {what}, "
            f"{support.description}. Received: {abbreviate(value)}"
        )
    return numbers


def _is_number(value: object) -> bool:
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
