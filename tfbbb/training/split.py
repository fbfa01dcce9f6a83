"""Splits the rows of a table into training and held-out rows."""

from dataclasses import dataclass

import numpy as np

from tfbbb.data import Schema, TableError, split
from tfbbb.data.column_names import check_column_exists
from tfbbb.data.column_source import ColumnSource
from tfbbb.data.values import column_kind, first_row, read_numbers
from tfbbb.training.spec import JobSpec
from tfbbb.training.spec.training import DEFAULT_FRACTION, MAX_HELD_OUT

# A mean over this many rows has a standard error of 0.5 % of the standard deviation.
_MOST_MEASURED = 50_000


@dataclass(frozen=True)
class Split:
    """The training and held-out rows of a table.

    Attributes:
        training: Indices of the training rows.
        held_out: Indices of the held-out rows, at most 50 000; empty if members leave
            out folds of the training rows instead.
    """

    training: np.ndarray
    held_out: np.ndarray


def split_rows(
    table: ColumnSource, schema: Schema, spec: JobSpec, *, cross_fits: bool = False
) -> Split:
    """Splits the rows of a table, by a column or at random.

    Args:
        table: The table.
        schema: The schema. Random splits are stratified by class.
        spec: The spec, whose `training.validation` applies.
        cross_fits: Whether all rows are training rows, of which members leave out
            folds.

    Raises:
        TableError: The column is missing, has values other than true and false, or is
            the same in all rows; or there is no row to hold out.
    """
    if cross_fits:
        return Split(np.arange(table.num_rows), np.arange(0))
    validation = spec.training.validation
    if validation.column is not None:
        marked = _read_marks(table, validation.column)
        held_out = np.random.default_rng(spec.training.seed).permutation(
            np.flatnonzero(marked)
        )
        return Split(np.flatnonzero(~marked), np.sort(held_out[:_MOST_MEASURED]))
    if table.num_rows < 2:
        rows_there = "1 row" if table.num_rows else "0 rows"
        raise TableError(
            f"The table has {rows_there}; at least 2 are needed, one to train on and "
            "one to hold out."
        )
    fraction = validation.fraction
    if fraction is None:
        fraction = min(DEFAULT_FRACTION, MAX_HELD_OUT / table.num_rows)
    classes = schema.targets(table) if schema.task == "classification" else None
    training, held_out = split(
        table.num_rows, fraction, seed=spec.training.seed, stratify=classes
    )
    if not len(held_out):
        raise TableError(
            f"The target {spec.target!r} has {len(training)} classes of one row each, "
            "so no row can be held out; group its classes."
        )
    return Split(training, held_out[:_MOST_MEASURED])


def _read_marks(table: ColumnSource, name: str) -> np.ndarray:
    """Returns which rows `[n]` a column of booleans, or of 0 and 1, marks."""
    check_column_exists(table, name, role="validation")
    if column_kind(table, name) != "numeric":
        raise TableError(
            f"The validation column {name!r} must be true or 1 in the held-out rows, "
            "and false or 0 in the others."
        )
    values = read_numbers(table, name)
    other = ~np.isin(values, (0.0, 1.0))
    if other.any():
        row = first_row(other)
        raise TableError(
            f"The validation column {name!r} must be true or 1 in the held-out rows, "
            f"and false or 0 in the others, but is {values[row - 1]:g} in row {row}."
        )
    marked = values == 1.0
    if marked.all() or not marked.any():
        raise TableError(
            f"The validation column {name!r} must mark the held-out rows, but has the "
            "same value in all rows."
        )
    return marked
