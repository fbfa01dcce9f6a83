"""The targets of a table that a model predicts."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tfbbb.data import TableError
from tfbbb.data.column_names import check_column_exists
from tfbbb.data.notations import Notation
from tfbbb.data.target import class_targets, regression_targets
from tfbbb.data.values import missing_values
from tfbbb.export.manifest import Manifest


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


def read_labels_or_numbers(
    table: pa.Table,
    name: str,
    classes: Sequence[str] | None,
    notation: Notation | None,
) -> np.ndarray:
    """Returns the targets of a table as the service takes them: numbers or labels [n].

    Raises:
        TableError: The table has no column of the target, or a value does not fit.
    """
    check_column_exists(table, name, role="target")
    if classes is None:
        return regression_targets(table, name, notation)
    codes = class_targets(table, name, tuple(classes), notation)
    return np.array(classes, dtype=object)[codes]


def _column(table: pa.Table, manifest: Manifest) -> tuple[str, Notation | None]:
    """Returns the name and the notation of the column of the target."""
    if manifest.target is None:
        raise TableError(
            "The model does not know the name of its target, so the command does not "
            "know the column; export the model with `target`."
        )
    check_column_exists(table, manifest.target, role="target")
    return manifest.target, manifest.read_target_notation()
