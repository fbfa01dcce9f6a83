"""Chooses the task of a target, and how its cells are read."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfbbb.base.task import MAX_CATEGORIES, Task
from tfbbb.tables.cells import Cells
from tfbbb.tables.column_names import ColumnSource
from tfbbb.tables.notation_choice import choose_notation, remarks_on, without_sentinels
from tfbbb.tables.notations import Notation, infer_beside_odd_cells, infer_marks
from tfbbb.tables.notations.date import DateNotation
from tfbbb.tables.notations.notation import Texts
from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.notations.words import BooleanNotation, TextNotation
from tfbbb.tables.override import Override
from tfbbb.tables.parsed_column import ParsedColumn, parse_column
from tfbbb.tables.table_error import ColumnError, TableError
from tfbbb.tables.values import drop_missing

# So few distinct whole numbers may be classes.
_FEW = 10
# Written as text, so few are.
_FEW_AS_TEXT = 20


class TargetChoice(NamedTuple):
    """How a target is read."""

    task: Task
    notation: Notation | None = None
    remarks: tuple[str, ...] = ()


def choose_target(
    table: ColumnSource, cells: Cells, task: Task | None, override: Override | None
) -> TargetChoice:
    """Chooses the task and the notation of a target."""
    if override is not None:
        return _choose_as_asked(cells, task, override)
    if cells.kind == "date":
        raise _of_dates(cells)
    if cells.kind == "categorical":
        return _choose_of_texts(cells, task)
    if cells.is_boolean or task == "classification":
        return TargetChoice(task or "classification")
    numeric, remarks = without_sentinels(cells, None, of_target=True)
    chosen = TargetChoice("regression")
    if task is None:
        parsed = parse_column(table, cells.name, "numeric", numeric, cells=cells)
        chosen = _choose_of_numbers(parsed)
    return TargetChoice(chosen.task, numeric, (*chosen.remarks, *remarks))


def _choose_of_texts(cells: Cells, task: Task | None) -> TargetChoice:
    if task == "classification" or (task is None and cells.is_category):
        return _as_classes(cells)
    found = infer_beside_odd_cells(cells.texts, cells.decimal_commas)
    if isinstance(found.notation, DateNotation) and found.share == 1.0:
        raise _of_dates(cells)
    if found.notation is not None and found.notation.kind in ("number", "duration"):
        if task is None and found.notation == NumberNotation():
            number = len(cells.texts.distinct)
            known = drop_missing(cells.texts.parse(found.notation).numbers)
            if number <= _FEW_AS_TEXT and (known == np.floor(known)).all():
                remark = (
                    f"Its {number} distinct numbers, written as text, are classes; the "
                    "task 'regression' (--task regression) predicts numbers."
                )
                return _as_classes(cells)._replace(remarks=(remark,))
        numeric, remarks = without_sentinels(cells, found.notation, of_target=True)
        return TargetChoice("regression", numeric, (*remarks_on(found), *remarks))
    if task == "regression":
        return TargetChoice(task, NumberNotation())
    if found.remarks and found.notation is None:
        raise TableError(
            f"The target {cells.name!r}: {found.remarks[0]}; correct the cells, or "
            "pass task='classification' (--task classification)."
        )
    return _as_classes(cells)


def _as_classes(cells: Cells) -> TargetChoice:
    texts, marks = cells.texts, infer_marks(cells.texts)
    notation, remarks = marks.notation, remarks_on(marks)
    if notation is None and not marks.remarks and texts.missing().any():
        notation = TextNotation(marks=True)
    if not cells.is_category and (spellings := _find_spellings(texts)):
        has_marks, dash = notation is not None, getattr(notation, "dash", "")
        notation = TextNotation(marks=has_marks, dash=dash, fold=True)
        shown = " and ".join(map(repr, spellings))
        one = spellings[0].strip().lower()
        remarks = (*remarks, f"Its {shown} are one class, {one!r}.")
    return TargetChoice("classification", notation, remarks)


def _find_spellings(texts: Texts) -> list[str]:
    """Returns the spellings of one class, such as `Yes` and `YES `; none for none."""
    missing = pa.array(texts.missing(in_text=True))
    labels = pc.unique(texts.cells.filter(pc.invert(missing)))
    if len(labels) > 2 * MAX_CATEGORIES:
        return []
    spellings: dict[str, list[str]] = {}
    for label in labels.to_pylist():
        spellings.setdefault(label.strip().lower(), []).append(label)
    several = {name: found for name, found in spellings.items() if len(found) > 1}
    # Others of fewer than three letters may be codes, such as the genotypes Aa and AA.
    words = pa.array([name for name in several if len(name) < 3], pa.large_string())
    if BooleanNotation().parse(words).unreadable.any():
        return []
    return next(iter(several.values()), [])


def _choose_as_asked(
    cells: Cells, task: Task | None, override: Override
) -> TargetChoice:
    name = cells.name
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
        marks = TextNotation(marks=True) if cells.kind == "categorical" else None
        return TargetChoice("classification", marks)
    _, notation, remarks = choose_notation(cells, override)
    return TargetChoice(task or "regression", notation, remarks)


def _choose_of_numbers(parsed: ParsedColumn) -> TargetChoice:
    """Chooses the task of plain numbers, and says so where it is open."""
    known = parsed.values[~parsed.missing]
    distinct = np.unique(known)
    if np.array_equal(distinct, [0.0, 1.0]):
        remark = (
            "Its values are 0 and 1, so they are two classes; the task 'regression' "
            "(--task regression) predicts them as numbers."
        )
        return TargetChoice("classification", remarks=(remark,))
    whole = bool((distinct == np.floor(distinct)).all())
    if whole and 1 < len(distinct) <= _FEW and 2 * len(distinct) < len(known):
        remark = (
            f"Its values are {len(distinct)} distinct whole numbers, predicted as "
            "numbers; the task 'classification' (--task classification) predicts them "
            "as classes."
        )
        return TargetChoice("regression", remarks=(remark,))
    return TargetChoice("regression")


def _of_dates(cells: Cells) -> ColumnError:
    return ColumnError(
        f"The target {cells.name!r} holds values of type {cells.type}, which "
        "are dates; turn them into numbers, such as days since a date.",
        cells.name,
    )
