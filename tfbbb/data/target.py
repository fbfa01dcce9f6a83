"""The target column of a model: its task, its values and its classes."""

import numpy as np
import pyarrow as pa
import pyarrow.compute

from tfbbb.data.column import Column
from tfbbb.data.column_names import list_names
from tfbbb.data.column_source import ColumnSource
from tfbbb.data.table_error import TableError
from tfbbb.data.task import MAX_CATEGORIES, Task
from tfbbb.data.values import (
    column_kind,
    first_row,
    is_boolean,
    number_texts,
    read_labels,
    read_numbers,
)


def infer_task(table: ColumnSource, name: str) -> Task:
    """Returns the task of a target: classification for text and booleans.

    Raises:
        TableError: The target is text, but most of its values are numbers.
    """
    if is_boolean(table, name):
        return "classification"
    if column_kind(table, name) == "numeric":
        return "regression"
    numbers = number_texts(table, name)
    if 2 * numbers.sum() > len(numbers) and not numbers.all():
        row = first_row(~numbers)
        raise TableError(
            f"The target {name!r} is mostly numbers, but has the text "
            f"{table.column(name)[row - 1].as_py()!r} in row {row}; correct the cell, "
            "or pass task='classification'."
        )
    return "classification"


def infer_target(
    table: ColumnSource, name: str, task: Task, rows: np.ndarray | None
) -> tuple[Column, tuple[str, ...]]:
    """Infers the target column and its classes (none for a regression).

    Args:
        table: Table with a column of this name.
        name: Name of the target column.
        task: `"regression"` or `"classification"`.
        rows: Indices of the training rows, or None for all.

    Raises:
        TableError: A value is missing or of the wrong kind, the target is
            constant in the training rows, or there are more than 1000 classes.
    """
    if task == "regression":
        return _infer_regression(table, name, rows), ()
    return _infer_classification(table, name, rows)


def regression_targets(table: ColumnSource, name: str) -> np.ndarray:
    """Returns a target as float64 numbers `[n]`.

    Raises:
        TableError: A value is missing, infinite or not a number.
    """
    values = read_numbers(table, name)
    missing = np.isnan(values)
    if missing.any():
        raise TableError(
            f"The target {name!r} has no value in row {first_row(missing)}; drop the "
            "rows without a target."
        )
    return values


def class_targets(
    table: ColumnSource, name: str, classes: tuple[str, ...]
) -> np.ndarray:
    """Returns a target as int32 class indices `[n]`.

    Raises:
        TableError: A value is missing, or not one of the classes.
    """
    codes, labels = read_labels(table, name)
    places = pa.compute.index_in(labels, value_set=pa.array(classes, pa.string()))
    indices = places.fill_null(-1).to_numpy()[codes]
    if (unknown := indices < 0).any():
        row = first_row(unknown)
        label = labels[int(codes[row - 1])].as_py()
        raise TableError(
            f"The target {name!r} has the class {label!r} in row {row}; the "
            f"classes in training were {list_names(classes)}."
        )
    return indices


def _infer_regression(
    table: ColumnSource, name: str, rows: np.ndarray | None
) -> Column:
    values = regression_targets(table, name)
    column = Column.from_numbers(name, values, rows)
    if column.constant:
        raise TableError(
            f"The target {name!r} has the same value, {column.mean:g}, in every "
            "training row, so there is nothing to learn."
        )
    return column


def _infer_classification(
    table: ColumnSource, name: str, rows: np.ndarray | None
) -> tuple[Column, tuple[str, ...]]:
    codes, labels = read_labels(table, name)
    known = np.unique(codes if rows is None else codes[rows])
    if len(known) == 1:
        label = labels[int(known[0])].as_py()
        raise TableError(
            f"The target {name!r} has the same class, {label!r}, in every "
            "training row, so there is nothing to learn."
        )
    if len(labels) > MAX_CATEGORIES:
        raise TableError(
            f"The target {name!r} has {len(labels)} classes; at most "
            f"{MAX_CATEGORIES} are possible."
        )
    numbers = column_kind(table, name) == "numeric" and not is_boolean(table, name)
    classes = tuple(sorted(labels.to_pylist(), key=int if numbers else None))
    return Column(name=name, kind="categorical", categories=classes), classes
