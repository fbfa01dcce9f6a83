"""The targets of a table that a model predicts."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute

from tfbbb.export.manifest import Manifest
from tfbbb.tables import TableError
from tfbbb.tables.column_names import check_column_exists
from tfbbb.tables.notations import Notation
from tfbbb.tables.target import (
    class_targets,
    missing_values,
    regression_targets,
    unseen_classes,
)


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


def without_unseen_classes(
    table: pa.Table, name: str, classes: Sequence[str] | None, notation: Notation | None
) -> tuple[pa.Table, dict[int, str]]:
    """Empties the target in rows of a class that training did not have.

    Args:
        table: The table.
        name: Name of the target.
        classes: The classes of training; None for numbers, which are all kept.
        notation: How the target is read.

    Returns:
        The table, and the labels that were emptied by the index of their rows.
    """
    check_column_exists(table, name, role="target")
    if classes is None:
        return table, {}
    unseen = unseen_classes(table, name, tuple(classes), notation)
    if not unseen:
        return table, unseen
    rows = np.zeros(table.num_rows, dtype=bool)
    rows[list(unseen)] = True
    place = table.column_names.index(name)
    values = pa.compute.if_else(rows, None, table[name])
    return table.set_column(place, table.field(name), values), unseen


def describe_unseen(name: str, labels: dict[int, str], num_rows: int, end: str) -> str:
    """Returns a note that counts the rows of classes that training did not have.

    Args:
        name: Name of the target.
        labels: Labels by the index of their rows.
        num_rows: Number of all rows.
        end: What happens to such rows.
    """
    row, label = next(iter(labels.items()))
    have = "has" if len(labels) == 1 else "have"
    return (
        f"{len(labels)} of {num_rows} rows {have} a class of {name!r} that training "
        f"did not have, such as {label!r} in row {row + 1}; {end}."
    )


UNSEEN_TARGET = "The target has the class {!r}, unseen in training; it has no log_prob."
"""The warning of a row, with its class."""


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
