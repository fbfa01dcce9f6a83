"""Finds the rows of a table with a target, and holds some of them out."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from tfbbb.base.types import Config
from tfbbb.tables import Schema, TableError, split
from tfbbb.tables.cells import Cells
from tfbbb.tables.column_names import (
    ColumnSource,
    check_column_names,
    check_columns_exist,
    named_targets,
)
from tfbbb.tables.groups_and_times import group_repeated_rows, read_groups, read_times
from tfbbb.tables.override import Override
from tfbbb.tables.parsed_column import ParsedColumn
from tfbbb.tables.target import missing_values, rows_with_target
from tfbbb.tables.target_choice import TargetChoice
from tfbbb.tables.values import are_numbers, first_row
from tfbbb.training.spec import JobSpec
from tfbbb.training.spec.training import DEFAULT_FRACTION, MAX_HELD_OUT

# A mean over this many rows has a standard error of 0.5 % of the standard deviation.
_MOST_MEASURED = 50_000
# The share of the last rows that measure members, half of which train on them.
_LAST_ROWS = 0.2
# Of rows that repeat features: fewer different ones cannot be divided into folds, and
# targets agree beyond chance only if rows were copied.
_FEWEST_GROUPS = 10
_AGREEMENT_OF_COPIES = 0.9


@dataclass(frozen=True)
class Split:
    """The training and held-out rows of a table, as indices.

    None are held out if members leave out folds: all rows of a group or none, or the
    `last` ones, masks of all rows. The description says `by` what.
    """

    training: np.ndarray
    held_out: np.ndarray
    groups: np.ndarray | None = None
    last: np.ndarray | None = None
    description: Config = field(default_factory=dict)


def split_rows(
    table: ColumnSource, schema: Schema, spec: JobSpec, *, num_folds: int = 0
) -> Split:
    """Splits the rows of a table: by a column, in time, by groups or at random.

    With `num_folds`, all rows train, and each member leaves out a fold of them; in
    time, members leave out the last fifth. At random, rows with equal features stay
    together, unless more than half of the rows repeat features and have other targets:
    then rows to predict will repeat them as well.
    """
    validation = spec.training.validation
    generator = np.random.default_rng(spec.training.seed)
    if validation.column is not None:
        marked = _read_marks(table, validation.column)
        return _split_by_mask(marked, generator, by="column", column=validation.column)
    if validation.time is not None:
        said = spec.columns.get(validation.time)
        override = None if said is None else Override.parse(said)
        read = functools.partial(read_times, override=override)
        times = _read_varied(read, table, validation.time, role="time")
        fraction = _LAST_ROWS if num_folds else _fraction(spec, table.num_rows)
        last = _mark_last(times, fraction)
        first = int(np.argmin(np.where(last, times, np.inf)))
        since = str(table.column(validation.time)[first].as_py())
        by_time = {"by": "time", "column": validation.time, "since": since}
        if num_folds:
            every = np.arange(len(times))
            return Split(every, every[:0], last=last, description=by_time)
        return _split_by_mask(last, generator, **by_time)
    classes = schema.targets(table) if schema.task == "classification" else None
    groups: np.ndarray | None
    if validation.group is not None:
        groups = _read_varied(read_groups, table, validation.group, role="group")
        number = int(groups.max()) + 1
        description = {"by": "group", "column": validation.group, "groups": number}
        if num_folds > number:
            raise TableError(
                f"The group column {validation.group!r} has {number} groups, fewer "
                f"than the {num_folds} folds that members leave out; hold whole groups "
                "out instead with a validation `fraction`, such as "
                f"{1 / number:.2g}."
            )
    else:
        if table.num_rows < 2:
            rows_there = "1 row" if table.num_rows else "0 rows"
            raise TableError(
                f"The table has {rows_there}; at least 2 are needed, one to train on "
                "and one to hold out."
            )
        groups, repeated = _groups_of_copies(table, schema)
        description = {
            "by": "random",
            "repeated_rows": repeated,
            "kept_together": groups is not None,
        }
    if num_folds:
        every = np.arange(table.num_rows)
        return Split(every, every[:0], groups, description=description)
    fraction, seed = _fraction(spec, table.num_rows), spec.training.seed
    options: dict[str, Any] = {"seed": seed, "stratify": classes}
    training, held_out = split(table.num_rows, fraction, groups=groups, **options)
    if not len(held_out) and validation.group is not None:
        raise TableError(
            f"Each class of {named_targets(spec.targets)} has its rows in one group of "
            f"the group column {validation.group!r}, so no group can be held out; use "
            "another column."
        )
    if not len(held_out):
        groups, description["kept_together"] = None, False
        training, held_out = split(table.num_rows, fraction, **options)
    if not len(held_out):
        raise TableError(
            f"The target {spec.targets[0]!r} has {len(training)} classes of one row "
            "each, so no row can be held out; group its classes."
        )
    return Split(training, held_out[:_MOST_MEASURED], groups, description=description)


def _fraction(spec: JobSpec, num_rows: int) -> float:
    fraction = spec.training.validation.fraction
    if fraction is None:
        fraction = min(DEFAULT_FRACTION, MAX_HELD_OUT / num_rows)
    return fraction


def _split_by_mask(
    held_out: np.ndarray, generator: np.random.Generator, **description: Any
) -> Split:
    rows = generator.permutation(np.flatnonzero(held_out))[:_MOST_MEASURED]
    return Split(
        np.flatnonzero(~held_out), np.sort(rows), description=dict(description)
    )


def _groups_of_copies(
    table: ColumnSource, schema: Schema
) -> tuple[np.ndarray | None, int]:
    """Returns groups of rows with equal features, or None, and how many repeat."""
    groups = group_repeated_rows(table, [column.name for column in schema.features])
    if groups is None:
        return None, 0
    sizes = np.bincount(groups)
    repeated = int(sizes[sizes > 1].sum())
    # If so many repeat with other targets, new rows have the same features.
    together = 2 * len(sizes) >= len(groups) or (
        len(sizes) >= _FEWEST_GROUPS
        and _agreement(groups, schema.targets(table)) >= _AGREEMENT_OF_COPIES
    )
    return groups if together else None, repeated


def _agreement(groups: np.ndarray, targets: np.ndarray) -> float:
    """Returns Cohen's kappa of whether two rows of a group have equal targets."""
    # Of a time, without its event.
    first = targets.reshape(len(targets), -1)[:, 0]
    values = np.unique(first, return_inverse=True)[1].ravel()
    both = np.unique(np.stack([groups, values]), axis=1, return_counts=True)[1]
    pairs, equal, all_equal = (
        float(np.square(counts, dtype=np.float64).sum() - len(groups))
        for counts in (np.bincount(groups), both, np.bincount(values))
    )
    by_chance = all_equal / (len(groups) * (len(groups) - 1.0))
    return (equal / pairs - by_chance) / (1.0 - by_chance) if by_chance < 1.0 else 1.0


def _mark_last(times: np.ndarray, fraction: float) -> np.ndarray:
    """Returns the mask of the last rows, as near to a fraction as equal times allow."""
    _, moments, counts = np.unique(times, return_inverse=True, return_counts=True)
    # Number of rows that are held out from each moment on; never all of them.
    from_moment = np.cumsum(counts[::-1])[::-1][1:]
    nearest = np.argmin(np.abs(from_moment - fraction * len(times)))
    return moments > nearest


def _read_varied(
    read: Callable[[ColumnSource, str], np.ndarray],
    table: ColumnSource,
    name: str,
    *,
    role: str,
) -> np.ndarray:
    """Reads a column that must have two values at least."""
    check_columns_exist(table, [name], role=role)
    values = read(table, name)
    if not len(values) or values.min() == values.max():
        raise TableError(
            f"The {role} column {name!r} has the same value in all rows, so it cannot "
            "tell rows to hold out from others."
        )
    return values


def _read_marks(table: ColumnSource, name: str) -> np.ndarray:
    """Returns which rows `[n]` a column of booleans, or of 0 and 1, marks."""
    check_columns_exist(table, [name], role="validation")
    cells = Cells.read(table, name)
    rule = (
        f"The validation column {name!r} must be true or 1 in the held-out rows, and "
        "false or 0 in the others"
    )
    if cells.kind != "numeric":
        raise TableError(f"{rule}.")
    values = ParsedColumn.parse(cells, "numeric").values
    other = ~np.isin(values, (0.0, 1.0))
    if other.any():
        row = first_row(other)
        raise TableError(f"{rule}, but is {values[row - 1]:g} in row {row}.")
    marked = values == 1.0
    if marked.all() or not marked.any():
        raise TableError(
            f"The validation column {name!r} must mark the held-out rows, but has the "
            "same value in all rows."
        )
    return marked


class RowsWithTargets(NamedTuple):
    """Which rows `[n]` have all targets, and how each target is read, by name."""

    known: np.ndarray
    choices: Mapping[str, TargetChoice]


def infer_schema(
    table: ColumnSource,
    spec: JobSpec,
    choices: Mapping[str, TargetChoice] | None = None,
) -> Schema:
    """Infers the schema of a table in which every row has a target."""
    columns = dict(spec.columns)
    validation = spec.training.validation
    decided_by = validation.column or validation.group
    if spec.features is None:
        if decided_by is not None:
            columns[decided_by] = "ignore"
        elif validation.time is not None and _is_of_numbers(table, validation.time):
            # Numbers of the rows would be left out.
            columns.setdefault(validation.time, "number")
    schema = Schema.infer(
        table,
        spec.targets,
        task=spec.asked_task,
        features=spec.features,
        exposure=spec.exposure,
        event=spec.event,
        columns=columns,
        held_out_at_random=validation.decided_by is None,
        target_choice=choices,
    )
    reasons = dict(schema.left_out)
    if decided_by in reasons:
        reasons[decided_by] = "It decides which rows validation leaves out."
    return replace(schema, left_out=tuple(reasons.items()))


def _is_of_numbers(table: ColumnSource, name: str) -> bool:
    return name in table.column_names and are_numbers(Cells.read(table, name).type)


def find_rows_with_target(
    table: ColumnSource, spec: JobSpec, schema: Schema | None = None
) -> RowsWithTargets:
    """Finds which rows of a table have their target, or all of several."""
    check_column_names(table.column_names)
    check_columns_exist(table, spec.targets, role="target")
    every, choices = np.ones(table.num_rows, dtype=bool), {}
    known_targets = () if schema is None else schema.target_columns
    for place, name in enumerate(spec.targets):
        if schema is not None:
            target = known_targets[place]
            known = ~missing_values(table, name, target.notation)
            choice = TargetChoice(schema.task, target.notation, target.remarks)
        else:
            text = spec.columns.get(name)
            override = None if text is None else Override.parse(text)
            known, choice = rows_with_target(table, name, spec.asked_task, override)
        if len(known) and not known.any():
            raise TableError(f"The target {name!r} has no values; name another column.")
        every &= known
        choices[name] = choice
    if len(every) and not every.any():
        raise TableError(f"No row has all of {named_targets(spec.targets)}.")
    return RowsWithTargets(every, choices)
