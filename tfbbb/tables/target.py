"""The target column of a model: its task, its values and its classes."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute

from tfbbb.base.task import MAX_CATEGORIES, Task
from tfbbb.tables.column import Column, choose_notation
from tfbbb.tables.column_names import list_names
from tfbbb.tables.column_source import ColumnSource
from tfbbb.tables.notations import (
    Notation,
    infer_marks,
    infer_notation,
)
from tfbbb.tables.notations.date import DateNotation
from tfbbb.tables.notations.notation import Texts
from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.notations.text import TextNotation
from tfbbb.tables.override import Override
from tfbbb.tables.table_error import ColumnError, TableError
from tfbbb.tables.values import (
    column_kind,
    first_row,
    is_boolean,
    missing_values,
    read_labels,
    read_numbers,
)

# So few distinct whole numbers may be classes.
_FEW = 10
# Written as text, so few are.
_FEW_AS_TEXT = 20
# A target of classes has each of them more than once.
_FEWEST_CLASSES_THAT_DIFFER = 20


def infer_target(
    table: ColumnSource,
    name: str,
    task: Task | None,
    rows: np.ndarray | None,
    override: Override | None = None,
) -> tuple[Task, Column, tuple[str, ...]]:
    """Infers the task, the target column and its classes (none for a regression).

    By default text, booleans, and numbers that are all 0 or 1 are classes.

    Args:
        table: Table with a column of this name.
        name: Name of the target column.
        task: `"regression"`, `"classification"`, or None to choose.
        rows: Indices of the training rows, or None for all.
        override: What the column is, in place of what its cells suggest.

    Raises:
        TableError: A value is missing or of the wrong kind, the target is
            constant in the training rows, there are more than 1000 classes, or nearly
            all rows have a class of their own.
    """
    chosen, column = _choose(table, name, task, override)
    # A user may ask for classes by the task, not by saying that they are texts.
    if chosen == "classification" and task is None:
        _check_repeated_classes(table, column)
    column, classes = fit_target(table, column, chosen, rows)
    return chosen, column, classes


def _check_repeated_classes(table: ColumnSource, column: Column) -> None:
    """Raises `TableError` if most rows have a class of their own."""
    name, num_rows = column.name, table.num_rows
    _, labels = read_labels(table, name, column.notation)
    if not classes_repeat(len(labels), num_rows):
        raise TableError(
            f"The target {name!r} has {len(labels)} classes in {num_rows} rows, "
            "so most of them have one row, which teaches nothing about others; group "
            "its values, name another target or, if they are numbers, say so with "
            f"columns={{{name!r}: 'number'}} (--column {name}=number)."
        )


def classes_repeat(num_classes: int, num_rows: int) -> bool:
    """Whether so many classes of so many rows can be learned from one another."""
    few = num_classes <= _FEWEST_CLASSES_THAT_DIFFER
    return few or 2 * num_classes <= num_rows


def fit_target(
    table: ColumnSource, column: Column, task: Task, rows: np.ndarray | None
) -> tuple[Column, tuple[str, ...]]:
    """Returns the target column with the statistics of some rows, and its classes."""
    fit = _fit_numbers if task == "regression" else _fit_classes
    fitted, classes = fit(table, column.name, rows, column.notation)
    return (
        replace(fitted, notation=column.notation, remarks=column.remarks),
        classes,
    )


def rows_with_target(
    table: ColumnSource,
    name: str,
    task: Task | None = None,
    override: Override | None = None,
) -> np.ndarray:
    """Returns which rows `[n]` have a target.

    Raises:
        TableError: The target cannot be read.
    """
    _, column = _choose(table, name, task, override)
    return ~missing_values(table, name, column.notation)


def _choose(
    table: ColumnSource, name: str, task: Task | None, override: Override | None
) -> tuple[Task, Column]:
    """Chooses the task and the notation of a target."""
    kind = column_kind(table, name)
    column = Column(name, "categorical")
    if override is not None:
        return _choose_as_asked(table, column, task, override)
    if kind == "date":
        raise _of_dates(table, name)
    if kind == "numeric":
        if task is not None or is_boolean(table, name):
            return task or "classification", column
        return _choose_of_numbers(column, read_numbers(table, name))
    texts = Texts.of(table.column(name))
    distinct = texts.distinct()
    marks = infer_marks(texts)
    notation = marks.notation
    if notation is None and texts.missing().any():
        notation = TextNotation(marks=True)
    said = tuple(f"{text[0].upper()}{text[1:]}." for text in marks.remarks)
    as_classes = replace(column, notation=notation, remarks=said)
    if task == "classification":
        return task, as_classes
    found = infer_notation(distinct)
    if isinstance(found.notation, DateNotation) and found.share == 1.0:
        raise _of_dates(table, name)
    readable = 0.0
    if found.notation is not None and found.notation.kind in ("number", "duration"):
        parsed = texts.parse(found.notation)
        readable = 1.0 - float(parsed.unreadable.mean())
    if readable == 1.0 and found.notation is not None:
        remarks = tuple(f"{text[0].upper()}{text[1:]}." for text in found.remarks)
        column = replace(column, notation=found.notation, remarks=remarks)
        if task is not None:
            return task, column
        numbers = parsed.numbers[~np.isnan(parsed.numbers)]
        bare = found.notation == NumberNotation() and bool(
            (numbers == np.floor(numbers)).all()
        )
        if bare and len(distinct) <= _FEW_AS_TEXT:
            remark = (
                f"Its {len(distinct)} distinct numbers, written as text, are classes; "
                "the task 'regression' (--task regression) predicts numbers."
            )
            return "classification", replace(as_classes, remarks=(remark,))
        return "regression", column
    if task == "regression":
        return task, replace(column, notation=NumberNotation())
    if readable > 0.5:
        assert found.notation is not None
        row = first_row(texts.parse(found.notation).unreadable)
        raise TableError(
            f"The target {name!r} is mostly {found.notation.kind}s, but has the text "
            f"{table.column(name)[row - 1].as_py()!r} in row {row}; correct the cell, "
            "or pass task='classification'."
        )
    return "classification", as_classes


def _choose_as_asked(
    table: ColumnSource, column: Column, task: Task | None, override: Override
) -> tuple[Task, Column]:
    name = column.name
    if override.kind in ("ignore", "hashed", "date"):
        raise ColumnError(
            f"The target {name!r} cannot be {override.kind!r}; say number or text.",
            name,
        )
    if override.kind in ("text", "boolean"):
        if task == "regression":
            raise ColumnError(
                f"The target {name!r} is said to be {override.kind!r}, of which there "
                "is no regression; leave out the task or the override.",
                name,
            )
        texts = column_kind(table, name) == "categorical"
        marks = TextNotation(marks=True) if texts else None
        return "classification", replace(column, notation=marks)
    notation, remarks = choose_notation(table, name, override)
    return task or "regression", replace(column, notation=notation, remarks=remarks)


def _choose_of_numbers(column: Column, values: np.ndarray) -> tuple[Task, Column]:
    """Chooses the task of plain numbers, and says so where it is open."""
    known = values[~np.isnan(values)]
    distinct = np.unique(known)
    if np.array_equal(distinct, [0.0, 1.0]):
        remark = (
            "Its values are 0 and 1, so they are two classes; the task 'regression' "
            "(--task regression) predicts them as numbers."
        )
        return "classification", replace(column, remarks=(remark,))
    whole = bool((distinct == np.floor(distinct)).all())
    if whole and 1 < len(distinct) <= _FEW and 2 * len(distinct) < len(known):
        remark = (
            f"Its values are {len(distinct)} distinct whole numbers, predicted as "
            "numbers; the task 'classification' (--task classification) predicts them "
            "as classes."
        )
        return "regression", replace(column, remarks=(remark,))
    return "regression", column


def _of_dates(table: ColumnSource, name: str) -> ColumnError:
    return ColumnError(
        f"The target {name!r} holds values of type {table.column(name).type}, which "
        "are dates; turn them into numbers, such as days since a date.",
        name,
    )


def regression_targets(
    table: ColumnSource, name: str, notation: Notation | None = None
) -> np.ndarray:
    """Returns a target as float64 numbers `[n]`.

    Raises:
        TableError: A value is missing, infinite or not a number.
    """
    values = read_numbers(table, name, notation)
    missing = np.isnan(values)
    if missing.any():
        raise TableError(
            f"The target {name!r} has no value in row {first_row(missing)}; drop the "
            "rows without a target."
        )
    return values


def class_targets(
    table: ColumnSource,
    name: str,
    classes: tuple[str, ...],
    notation: Notation | None = None,
) -> np.ndarray:
    """Returns a target as int32 class indices `[n]`.

    Raises:
        TableError: A value is missing, or not one of the classes.
    """
    codes, labels = read_labels(table, name, notation)
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


def _fit_numbers(
    table: ColumnSource,
    name: str,
    rows: np.ndarray | None,
    notation: Notation | None,
) -> tuple[Column, tuple[str, ...]]:
    values = regression_targets(table, name, notation)
    column = Column.from_numbers(name, values, rows)
    if column.constant:
        raise TableError(
            f"The target {name!r} has the same value, {column.mean:g}, in every "
            "training row, so there is nothing to learn."
        )
    return column, ()


def _fit_classes(
    table: ColumnSource,
    name: str,
    rows: np.ndarray | None,
    notation: Notation | None,
) -> tuple[Column, tuple[str, ...]]:
    codes, labels = read_labels(table, name, notation)
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
