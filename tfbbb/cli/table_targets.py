"""The targets of a table that a model predicts."""

from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np
import pyarrow as pa

from tfbbb.cli.notes import echo_note
from tfbbb.export.manifest import Manifest
from tfbbb.tables import TableError
from tfbbb.tables.column_names import check_columns_exist
from tfbbb.tables.target import (
    KnownTargets,
    UnusableTarget,
    describe_unusable,
    read_known_targets,
)


def read_targets(table: pa.Table, manifest: Manifest) -> KnownTargets:
    """Returns targets: numbers [n, k], times and events [n, 2], or classes [n]."""
    names = target_columns(manifest)
    notations = manifest.read_target_notations()[: len(names)]
    found = read_known_targets(table, names, manifest.classes, notations)
    if manifest.classes is not None:
        return found
    support = manifest.targets.support
    if support is not None:
        found = found.within(support.contains(found.values), support.description)
    if manifest.event is None:
        return found
    check_columns_exist(table, [manifest.event.name], role="event")
    events = manifest.event.column.values(table)
    events = np.where(np.isin(events, (0.0, 1.0)), events, np.nan)
    both = np.concatenate([found.values, events[:, np.newaxis]], axis=1)
    return KnownTargets(both, found.unusable)


def read_usable_targets(table: pa.Table, manifest: Manifest) -> KnownTargets:
    """Returns targets, at least one of them to use, and notes which are left out."""
    found, name = read_targets(table, manifest), ", ".join(manifest.target_names)
    num_rows = len(found.known)
    if not found.known.any():
        refuse_without_targets(name, found.unusable, num_rows)
    end = "such rows are left out"
    for note in describe_unusable(name, found.unusable, num_rows, end):
        echo_note(note)
    if num_missing := int(found.missing.sum()):
        echo_note(
            f"{num_missing} of {num_rows} rows have no {name!r} and are left out."
        )
    return found


def columns_used(manifest: Manifest) -> list[str]:
    """Returns the names of features, targets and event, which rows keep if asked."""
    events = [manifest.event.name] if manifest.event else []
    features = [feature.name for feature in manifest.features]
    return [*features, *manifest.target_names, *events]


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


def target_columns(manifest: Manifest) -> tuple[str, ...]:
    """Returns the names of the columns of the targets."""
    if manifest.target is None:
        raise TableError(
            "The model does not know the name of its target, so the command does not "
            "know the column; export the model with `target`."
        )
    return manifest.target_names
