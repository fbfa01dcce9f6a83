"""The targets of a table that a model predicts."""

from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np
import pyarrow as pa

from tfbbb.export.manifest import Manifest
from tfbbb.tables import TableError
from tfbbb.tables.column_names import check_columns_exist
from tfbbb.tables.known_targets import (
    KnownTargets,
    UnusableTarget,
    describe_unusable,
    read_known_targets,
)
from tfbbb.tables.notations import Notation


def read_targets(table: pa.Table, manifest: Manifest) -> KnownTargets:
    """Returns the targets of a table: numbers [n, 1], or class indices [n].

    Times that may be cut off are [n, 2], with events.
    """
    name, notation = target_column(manifest)
    found = read_known_targets(table, name, manifest.classes, notation)
    if manifest.classes is not None:
        return found
    column = KnownTargets(found.values[:, np.newaxis], found.unusable)
    support = manifest.targets.support
    if support is not None:
        column = column.within(support.contains(column.values), support.description)
    if manifest.event is None:
        return column
    check_columns_exist(table, [manifest.event.name], role="event")
    events = manifest.event.column.values(table)
    events = np.where(np.isin(events, (0.0, 1.0)), events, np.nan)
    both = np.concatenate([column.values, events[:, np.newaxis]], axis=1)
    return KnownTargets(both, column.unusable)


def refuse_without_targets(
    name: str, unusable: Mapping[int, UnusableTarget], num_rows: int
) -> NoReturn:
    """Raises the `TableError` of a table in which no row has a target to use."""
    if not unusable:
        raise TableError(f"No row of the table has a target: column {name!r} is empty.")
    end = "no row has a target to use"
    raise TableError(" ".join(describe_unusable(name, unusable, num_rows, end)))


def name_classes(values: np.ndarray, classes: Sequence[str] | None) -> np.ndarray:
    """Returns targets as the service takes them: numbers, or labels of indices [n]."""
    return values if classes is None else np.array(classes, dtype=object)[values]


def target_column(manifest: Manifest) -> tuple[str, Notation | None]:
    """Returns the name and the notation of the column of the target."""
    if manifest.target is None:
        raise TableError(
            "The model does not know the name of its target, so the command does not "
            "know the column; export the model with `target`."
        )
    return manifest.target, manifest.read_target_notation()
