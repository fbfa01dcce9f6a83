"""The target column of a model: its task, its values and its classes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.base.task import MAX_CATEGORIES, Task
from tfbbb.base.texts import abbreviate
from tfbbb.tables.cells import Cells, Kind
from tfbbb.tables.column import Column
from tfbbb.tables.column_names import ColumnSource, check_columns_exist, list_names
from tfbbb.tables.notations import Notation
from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.notations.words import TextNotation
from tfbbb.tables.override import Override
from tfbbb.tables.parsed_column import (
    ParsedColumn,
    describe_fault,
    first_fault,
    parse_column,
)
from tfbbb.tables.table_error import TableError
from tfbbb.tables.target_choice import TargetChoice, choose_target
from tfbbb.tables.values import first_row

# A target of classes has each of them more than once.
_FEWEST_CLASSES_THAT_DIFFER = 20
# Whole numbers that may be grades, of which one is missing.
_NUMBERS_OF_GRADES = range(3, 10)


class UnusableTarget(NamedTuple):
    """A target that a row has, but that has no density."""

    cell: object
    reason: str

    @classmethod
    def unseen(cls, label: object) -> "UnusableTarget":
        """Returns the target of a class that training did not have."""
        return cls(label, "is a class unseen in training")

    @property
    def warning(self) -> str:
        """The warning of the row."""
        return f"The target {abbreviate(self.cell)} {self.reason}; it has no log_prob."


@dataclass(frozen=True)
class KnownTargets:
    """The targets of rows `[n]` or `[n, k]`, NaN or -1 where there is none to use."""

    values: np.ndarray
    unusable: Mapping[int, UnusableTarget]

    @property
    def known(self) -> np.ndarray:
        """Which rows [n] have a target with a density."""
        if self.values.dtype.kind == "i":
            return self.values >= 0
        of_row = tuple(range(1, self.values.ndim))
        return ~np.isnan(self.values).any(axis=of_row)

    @property
    def missing(self) -> np.ndarray:
        """Which rows [n] have no target."""
        missing = ~self.known
        missing[list(self.unusable)] = False
        return missing

    @property
    def filled(self) -> np.ndarray:
        """The targets, with that of the first known row where there is none to use."""
        known = self.known
        return self.values[np.where(known, np.arange(len(known)), np.argmax(known))]

    def within(self, inside: np.ndarray, description: str) -> "KnownTargets":
        """Returns the targets without numbers that the likelihood excludes."""
        outside = self.known & ~inside.reshape(len(inside), -1).all(axis=1)
        if not outside.any():
            return self
        reason = f"is outside of what the model predicts ({description})"
        unusable = {**self.unusable}
        for row in np.flatnonzero(outside):
            target = self.values[row]
            cell = target.item() if target.size == 1 else target.tolist()
            unusable[int(row)] = UnusableTarget(cell, reason)
        values = self.values.copy()
        values[outside] = np.nan
        return KnownTargets(values, dict(sorted(unusable.items())))


class Target(NamedTuple):
    """The target of a table."""

    task: Task
    column: Column
    classes: tuple[str, ...]
    parsed: ParsedColumn


def infer_target(
    table: ColumnSource,
    name: str,
    task: Task | None,
    rows: np.ndarray | None,
    override: Override | None = None,
    choice: TargetChoice | None = None,
) -> Target:
    """Infers the target of a table."""
    cells = _read_cells(table, name, override, choice and choice.notation)
    choice = choice or choose_target(table, cells, task, override)
    parsed = _parse(table, name, choice.task, choice.notation, cells)
    # A user may ask for classes by the task, not by saying that they are texts.
    if choice.task == "classification" and task is None:
        _check_repeated_classes(parsed)
    return _fit(cells, parsed, choice, rows)


def refit_target(
    table: ColumnSource, column: Column, task: Task, rows: np.ndarray
) -> Column:
    """Returns the target column with the statistics of some rows."""
    choice = TargetChoice(task, column.notation, column.remarks)
    return infer_target(table, column.name, task, rows, choice=choice).column


def _read_cells(
    table: ColumnSource,
    name: str,
    override: Override | None,
    notation: Notation | None = None,
) -> Cells:
    """Reads the cells of a target; as they are written where someone says what for."""
    cells = Cells.read(table, name)
    is_said = override is not None
    return cells.as_written if is_said else cells.written_for("numeric", notation)


def _check_repeated_classes(parsed: ParsedColumn) -> None:
    """Raises `TableError` if most rows have a class of their own."""
    name, number, num_rows = parsed.name, len(parsed.texts), len(parsed.values)
    if number > _FEWEST_CLASSES_THAT_DIFFER and 2 * number > num_rows:
        raise TableError(
            f"The target {name!r} has {number} classes in {num_rows} rows, "
            "so most of them have one row, which teaches nothing about others; group "
            "its values, name another target or, if they are numbers, say so with "
            f"columns={{{name!r}: 'number'}} (--column {name}=number)."
        )


def rows_with_target(
    table: ColumnSource,
    name: str,
    task: Task | None = None,
    override: Override | None = None,
) -> tuple[np.ndarray, TargetChoice]:
    """Finds which rows `[n]` have a target, and how the target of all is read."""
    cells = _read_cells(table, name, override)
    choice = choose_target(table, cells, task, override)
    return ~_find_missing(cells, choice.notation, unreadable=False), choice


def missing_values(
    table: ColumnSource, name: str, notation: Notation | None = None
) -> np.ndarray:
    """Returns which rows `[n]` have no target, or one that cannot be read."""
    cells = _read_cells(table, name, None, notation)
    return _find_missing(cells, notation, unreadable=True)


def _find_missing(
    cells: Cells, notation: Notation | None, *, unreadable: bool
) -> np.ndarray:
    if cells.kind != "categorical":
        # A value may be missing although others cannot be read.
        missing = cells.values.is_null(nan_is_null=True).to_numpy()
        if isinstance(notation, NumberNotation) and notation.missing_values:
            return missing | np.isin(cells.numbers, notation.missing_values)
        return missing
    texts = isinstance(notation, TextNotation | None)
    kind: Kind = "categorical" if texts else "numeric"
    parsed = ParsedColumn.parse(cells, kind, notation)
    if parsed.unreadable is None or unreadable:
        return parsed.missing
    return parsed.missing & ~parsed.unreadable


def read_target(
    table: ColumnSource, name: str, classes: tuple[str, ...], notation: Notation | None
) -> np.ndarray:
    """Returns a target as int32 class indices, or without classes as float64 `[n]`."""
    found = read_known_targets(table, [name], classes or None, [notation])
    for row, (cell, reason) in found.unusable.items():
        known = f"; the classes are {list_names(classes)}" if classes else ""
        raise TableError(
            f"The target {name!r} has {cell!r} in row {row + 1}, which {reason}{known}."
        )
    _check_known(name, found.missing, notation)
    return found.values if classes else found.values[:, 0]


def _check_known(name: str, missing: np.ndarray, notation: Notation | None) -> None:
    """Raises a `TableError` that names the first row without a target."""
    if missing.any():
        has = "no value"
        if isinstance(notation, NumberNotation) and notation.missing_values:
            numbers = ", ".join(f"{value:.15g}" for value in notation.missing_values)
            has = f"no value (or {numbers}, which stands for a missing value)"
        raise TableError(
            f"The target {name!r} has {has} in row {first_row(missing)}; drop the rows "
            "without a target."
        )


def written_as_classes(cells: Cells, classes: Sequence[str]) -> Cells:
    """Returns the cells of a target as texts, such as 1.0, if all are classes."""
    written = cells.as_written
    if written is not cells:
        labels = pc.unique(written.values).drop_null()
        are_classes = pc.is_in(labels, pa.array(classes, labels.type))
        return written if pc.all(are_classes).as_py() else cells.typed
    return cells


def _parse(
    table: ColumnSource, name: str, task: Task, notation: Notation | None, cells: Cells
) -> ParsedColumn:
    """Reads a target: numbers, or places of the distinct classes."""
    if task == "regression":
        parsed = parse_column(table, name, "numeric", notation, cells=cells)
    else:
        _check_whole(cells)
        parsed = parse_classes(table, cells, notation)
    if (fault := first_fault(cells, parsed)) is not None:
        raise TableError(f"The target {name!r} {fault}.")
    _check_known(name, parsed.missing, notation)
    return parsed


def _check_whole(cells: Cells) -> None:
    """Raises `TableError` for classes that are fractions."""
    if not cells.may_have_fractions:
        return
    values = cells.numbers
    wrong = ~np.isnan(values) & ((values != np.floor(values)) | np.isinf(values))
    if wrong.any():
        row = first_row(wrong)
        raise TableError(
            f"The target {cells.name!r} has the value {values[row - 1]:g} in row "
            f"{row}; classes must be text, booleans or whole numbers."
        )


def parse_classes(
    table: ColumnSource, cells: Cells, notation: Notation | None
) -> ParsedColumn:
    """Reads classes: of a number its digits, of a boolean `true` or `false`."""
    text = notation if isinstance(notation, TextNotation) else TextNotation()
    text, cells = replace(text, numbers=True), cells.typed
    return parse_column(table, cells.name, "categorical", text, cells=cells)


def class_indices(parsed: ParsedColumn, classes: Sequence[str]) -> np.ndarray:
    """Returns the place of each row's class `[n]`, int32; -1 for another class."""
    known = pa.array(classes, parsed.texts.type)
    places = pc.index_in(parsed.texts, value_set=known).fill_null(-1).to_numpy()
    return places[parsed.values]


def _fit(
    cells: Cells, parsed: ParsedColumn, choice: TargetChoice, rows: np.ndarray | None
) -> Target:
    """Describes a target by the statistics of some rows."""
    name, task = cells.name, choice.task
    remarks = tuple(dict.fromkeys([*choice.remarks, *_scarce_values(parsed, task)]))
    if task == "regression":
        column = Column.describe(parsed, rows, remarks=remarks)
        if column.constant:
            raise TableError(
                f"The target {name!r} has the same value, {column.mean:g}, in every "
                "training row, so there is nothing to learn."
            )
        return Target(task, column, (), parsed)
    labels = parsed.texts.to_pylist()
    known = np.unique(parsed.values if rows is None else parsed.values[rows])
    if len(known) == 1:
        raise TableError(
            f"The target {name!r} has the same class, {labels[known[0]]!r}, in every "
            "training row, so there is nothing to learn."
        )
    if len(labels) > MAX_CATEGORIES:
        raise TableError(
            f"The target {name!r} has {len(labels)} classes; at most "
            f"{MAX_CATEGORIES} are possible."
        )
    numbers = cells.kind == "numeric" and not cells.is_boolean
    classes = tuple(sorted(labels, key=float if numbers else None))
    column = Column(
        name,
        "categorical",
        categories=classes,
        notation=choice.notation,
        remarks=remarks,
    )
    return Target(task, column, classes, parsed)


def _scarce_values(parsed: ParsedColumn, task: Task) -> Iterator[str]:
    """Says which class has one row, or which grade among whole numbers has none."""
    if task == "classification":
        alone = np.flatnonzero(np.bincount(parsed.values) == 1)
        for label in parsed.texts.take(pa.array(alone)).to_pylist():
            yield (
                f"The class {label!r} has 1 row, too few to learn it and to measure "
                "it; add rows, or merge it with another class."
            )
        return
    grades = np.unique(parsed.values)
    if len(grades) not in _NUMBERS_OF_GRADES or grades[0] < 0.0:
        return
    # All but one of the whole numbers from the least to the greatest.
    if np.any(grades != np.floor(grades)) or grades[-1] - grades[0] != len(grades):
        return
    (missing,) = np.setdiff1d(np.arange(grades[0], grades[-1]), grades)
    yield (
        f"No row has the grade {missing:g} between {grades[0]:g} and {grades[-1]:g}: "
        "nothing tells how probable it is, and unless the spec names the likelihood "
        "'grades', it is not tried."
    )


def read_known_targets(
    table: ColumnSource,
    names: Sequence[str],
    classes: Sequence[str] | None,
    notations: Sequence[Notation | None],
) -> KnownTargets:
    """Reads the targets of a table as numbers [n, k], or as class indices [n]."""
    check_columns_exist(table, names, role="target")
    pairs = list(zip(names, notations, strict=True))
    if classes is not None:
        return _read_known_classes(table, *pairs[0], classes)
    found = []
    for name, notation in pairs:
        cells = _read_cells(table, name, None, notation)
        parsed = parse_column(table, name, "numeric", notation, cells=cells)
        found.append(_known_numbers(cells, parsed))
    unusable = {row: x for each in found for row, x in each.unusable.items()}
    values = np.stack([each.values for each in found], axis=-1)
    return KnownTargets(values, dict(sorted(unusable.items())))


def _read_known_classes(
    table: ColumnSource, name: str, notation: Notation | None, classes: Sequence[str]
) -> KnownTargets:
    cells = _read_cells(table, name, None, notation)
    cells = written_as_classes(cells, classes)
    parsed = parse_classes(table, cells, notation)
    missing = parsed.missing
    if not isinstance(notation, TextNotation | None):
        missing = missing_values(table, name, notation)
    values = np.where(missing, -1, class_indices(parsed, classes)).astype(np.int32)
    unseen = np.flatnonzero((values < 0) & ~missing).tolist()
    texts = parsed.texts.take(pa.array(parsed.values[unseen])).to_pylist()
    unusable = map(UnusableTarget.unseen, texts)
    return KnownTargets(values, dict(zip(unseen, unusable, strict=True)))


def read_known_numbers(cells: Cells, notation: Notation | None) -> KnownTargets:
    """Reads targets that are numbers in a notation; None for plain numbers."""
    return _known_numbers(cells, ParsedColumn.parse(cells, "numeric", notation))


def _known_numbers(cells: Cells, parsed: ParsedColumn) -> KnownTargets:
    unusable, kind = {}, "number" if parsed.notation is None else parsed.notation.kind
    if parsed.unreadable is not None:
        for row in np.flatnonzero(parsed.unreadable).tolist():
            cell = cells.values[row].as_py()
            unusable[row] = UnusableTarget(cell, describe_fault(cell, kind))
    return KnownTargets(parsed.values, unusable)


def describe_unusable(
    name: str, unusable: Mapping[int, UnusableTarget], num_rows: int, end: str
) -> list[str]:
    """Returns a sentence for each reason of unusable targets, which counts its rows."""
    sentences = []
    for reason in dict.fromkeys(each.reason for each in unusable.values()):
        rows = [row for row, each in unusable.items() if each.reason == reason]
        have = "has" if len(rows) == 1 else "have"
        sentences.append(
            f"{len(rows)} of {num_rows} rows {have} a {name!r} that {reason}, such as "
            f"{abbreviate(unusable[rows[0]].cell)} in row {rows[0] + 1}; {end}."
        )
    return sentences
