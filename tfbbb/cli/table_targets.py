"""The targets of a table that a model predicts."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute

from tfbbb.export.manifest import Manifest
from tfbbb.tables import TableError
from tfbbb.tables.column_names import check_column_exists
from tfbbb.tables.notations import Notation
from tfbbb.tables.target import class_targets, missing_values, regression_targets


def read_targets(table: pa.Table, manifest: Manifest) -> np.ndarray:
    """Returns the targets of a table: numbers [n, 1], or class indices [n].

    Raises:
        TableError: The table has no column of the target, or a value does not fit.
    """
    name, notation = _column(table, manifest)
    if manifest.classes is not None:
        return class_targets(table, name, manifest.classes, notation)
    return regression_targets(table, name, notation)[:, np.newaxis]


def targets_missing(table: pa.Table, manifest: Manifest) -> np.ndarray:
    """Returns which rows [n] have no target.

    Raises:
        TableError: The table has no column of the target.
    """
    return missing_values(table, *_column(table, manifest))


def fill_targets(
    table: pa.Table, name: str, notation: Notation | None
) -> tuple[pa.Table, np.ndarray]:
    """Fills missing targets with the first target, so that all rows can be asked for.

    Returns:
        The table, and which of its rows [n] had no target.

    Raises:
        TableError: The table has no column of the target, or no row has one.
    """
    check_column_exists(table, name, role="target")
    missing = missing_values(table, name, notation)
    check_has_target(name, not missing.all())
    places = np.where(missing, np.argmin(missing), np.arange(len(missing)))
    place = table.column_names.index(name)
    filled = table.set_column(place, table.field(name), table[name].take(places))
    return filled, missing


def check_has_target(name: str, has_one: bool) -> None:
    """Raises `TableError` unless a row has a target."""
    if not has_one:
        raise TableError(f"No row of the table has a target: column {name!r} is empty.")


def empty_log_prob(predictions: pa.Table, missing: np.ndarray) -> pa.Table:
    """Empties `log_prob` in the rows [n] that have no target."""
    if not missing.any():
        return predictions
    known = pa.compute.if_else(missing, None, predictions["log_prob"])
    place = predictions.column_names.index("log_prob")
    return predictions.set_column(place, "log_prob", known)


def read_labels_or_numbers(
    table: pa.Table,
    name: str,
    classes: Sequence[str] | None,
    notation: Notation | None,
) -> np.ndarray:
    """Returns the targets of a table as the service takes them: numbers or labels [n].

    Raises:
        TableError: The table has no column of the target, or a value is missing or does
            not fit.
    """
    check_column_exists(table, name, role="target")
    if classes is None:
        return regression_targets(table, name, notation)
    codes = class_targets(table, name, tuple(classes), notation)
    return np.array(classes, dtype=object)[codes]


def target_column(manifest: Manifest) -> tuple[str, Notation | None]:
    """Returns the name and the notation of the column of the target.

    Raises:
        TableError: The model does not know the name.
    """
    if manifest.target is None:
        raise TableError(
            "The model does not know the name of its target, so the command does not "
            "know the column; export the model with `target`."
        )
    return manifest.target, manifest.read_target_notation()


def _column(table: pa.Table, manifest: Manifest) -> tuple[str, Notation | None]:
    """Returns `target_column`, which the table must have."""
    name, notation = target_column(manifest)
    check_column_exists(table, name, role="target")
    return name, notation
