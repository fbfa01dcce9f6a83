"""Reads the targets of a prediction request."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tfbbb.base.texts import abbreviate
from tfbbb.export.inputs import class_name
from tfbbb.export.manifest import InputError, Manifest
from tfbbb.tables.cells import Cells
from tfbbb.tables.target import KnownTargets, UnusableTarget, read_known_numbers

# Of what one target may be, before it is read.
_TYPES = {int, float, str, type(None)}


def read_targets(values: object, manifest: Manifest, num_rows: int) -> KnownTargets:
    """Returns targets as the model takes them: numbers [n, k], or class indices [n]."""
    if not isinstance(values, list) or len(values) != num_rows:
        size = f"{len(values)} targets" if isinstance(values, list) else "no list"
        raise InputError(
            f"`targets` must be a list with one target for each of the {num_rows} "
            f"rows. Received: {size}"
        )
    if manifest.classes is not None:
        return _read_classes(values, manifest.classes)
    return _read_numbers(values, manifest)


def check_all_usable(targets: KnownTargets) -> None:
    """Raises an `InputError` that names the first row without a target to use."""
    for row in np.flatnonzero(~targets.known).tolist():
        if row in targets.unusable:
            cell, reason = targets.unusable[row]
            raise InputError(f"Row {row + 1}: the target {abbreviate(cell)} {reason}.")
        raise InputError(f"Row {row + 1} has no target: leave out the row.")


def fill_targets(values: np.ndarray, manifest: Manifest) -> np.ndarray:
    """Returns targets with one that the model has where a row has none to use."""
    if manifest.classes is not None:
        return np.where(values < 0, 0, values)
    support = manifest.targets.support
    assert support is not None
    # Of a time that happened, the event is 1, too.
    any_target = min(max(1.0, support.least), support.greatest)
    return np.where(np.isnan(values), any_target, values)


def _read_classes(values: list[object], classes: Sequence[str]) -> KnownTargets:
    places = {name: index for index, name in enumerate(classes)}
    indices = np.full(len(values), -1, np.int32)
    unusable = {}
    for row, value in enumerate(values):
        if value is None:
            continue
        # A list is no class, and has no hash either.
        if not isinstance(value, str | int | float):
            raise InputError(
                f"Row {row + 1}: the target must be one of the classes "
                f"{abbreviate(list(classes))}. Received: {abbreviate(value)}"
            )
        indices[row] = places.get(class_name(value), -1)
        if indices[row] < 0:
            unusable[row] = UnusableTarget.unseen(value)
    return KnownTargets(indices, unusable)


def _read_numbers(values: list[object], manifest: Manifest) -> KnownTargets:
    support, width = manifest.targets.support, manifest.targets.shape[-1]
    assert support is not None
    assert width is not None
    # Beside the time, whether the event happened then: 1 or 0.
    width += manifest.censored
    numbers = np.full((len(values), width), np.nan)
    texts: dict[tuple[int, int], str] = {}
    for row, value in enumerate(values):
        if value is None:
            continue
        listed = value if isinstance(value, list) else [value]
        if len(listed) != width or not {*map(type, listed)} <= _TYPES:
            what = "a number" if width == 1 else f"a list of {width} numbers"
            if manifest.censored:
                what = "a time and its event, 1 or 0, in a list"
            raise InputError(
                f"Row {row + 1}: the target must be {what}, {support.description}. "
                f"Received: {abbreviate(value)}"
            )
        for place, one in enumerate(listed):
            if isinstance(one, str):
                texts[row, place] = one
            elif one is not None:
                numbers[row, place] = _as_float(one)
    unusable = _read_texts(texts, numbers, manifest)
    inside = support.contains(numbers)
    if manifest.censored:
        inside[:, 1] = np.isin(numbers[:, 1], (0.0, 1.0))
    return KnownTargets(numbers, unusable).within(inside, support.description)


def _read_texts(
    texts: dict[tuple[int, int], str], numbers: np.ndarray, manifest: Manifest
) -> dict[int, UnusableTarget]:
    """Sets the numbers that texts stand for, by their row and place."""
    if not texts:
        return {}
    unusable: dict[int, UnusableTarget] = {}
    for column, notation in enumerate(manifest.read_target_notations()):
        rows = [row for row, place in texts if place == column]
        written = [texts[row, column] for row in rows]
        cells = Cells("targets", pa.chunked_array([written], pa.string()))
        found = read_known_numbers(cells, notation)
        numbers[rows, column] = found.values
        unusable |= {rows[index]: target for index, target in found.unusable.items()}
    return unusable


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf
