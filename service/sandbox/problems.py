"""Finds columns of a table that a model cannot use or does not profit from."""

from collections.abc import Iterable, Iterator

from service.sandbox.column_statistics import ColumnStatistics
from tfbbb.base.task import MAX_CATEGORIES, MIN_ROWS

_MOSTLY = 0.9
_MOST_LEVELS = 20
_CONSTANT = "It has the same value in every row, so a model learns nothing from it."


def find_problems(
    columns: Iterable[ColumnStatistics],
    num_rows: int,
    *,
    without_index: bool,
    found: str | None = None,
) -> list[dict[str, str | None]]:
    """Returns the problems to fix before training, as `column` and `message`."""
    table: list[str] = [] if found is None else [found]
    if without_index:
        table.append("The index that pandas wrote into the table is ignored.")
    if num_rows < MIN_ROWS:
        table.append(f"The table has {num_rows} rows; at least {MIN_ROWS} are needed.")
    problems: list[dict[str, str | None]] = [
        {"column": None, "message": message} for message in table
    ]
    for column in columns:
        for message in _column_problems(column):
            problems.append({"column": column.name, "message": message})
    return problems


def _column_problems(column: ColumnStatistics) -> Iterator[str]:
    if not column.known:
        yield "It has no values; leave the column out."
        return
    if 2 * column.missing > column.num_rows:
        share = column.missing / column.num_rows
        yield f"{share:.0%} of its values are missing."
    if column.type == "number":
        yield from _number_problems(column)
    elif column.type == "text":
        yield from _text_problems(column)
    elif column.type == "boolean":
        if column.distinct == 1:
            yield _CONSTANT
    elif column.type == "date":
        if column.first is not None and column.first == column.last:
            yield _CONSTANT
    else:
        yield (
            f"It holds values of type {column.arrow_type!s:.100}, which a model "
            "cannot read; convert them to numbers or text, or leave the column out."
        )


def _number_problems(column: ColumnStatistics) -> Iterator[str]:
    if column.infinite:
        yield (
            f"{column.infinite} of its values are infinite in single precision; "
            "they count as missing, and larger ones than 3.4e38 are refused: correct "
            "these cells."
        )
    if column.known > column.infinite and column.minimum == column.maximum:
        yield _CONSTANT


def _text_problems(column: ColumnStatistics) -> Iterator[str]:
    others = column.known - column.numbers_in_text
    many = column.distinct is None or column.distinct > _MOST_LEVELS
    if column.notation is not None:
        return
    if many and others and column.numbers_in_text >= _MOSTLY * column.known:
        yield (
            f"It is mostly numbers, but has the text {column.first_other!r}; correct "
            "the cell, empty it if the number is missing, or say what the column is in "
            "`columns`."
        )
    elif column.distinct is None:
        yield (
            f"It has more than {MAX_CATEGORIES} distinct texts, or very long ones; a "
            "model sees only the bucket that the hash of a text falls into. Free text, "
            "and texts that all differ, are left out."
        )
    elif column.distinct == 1 and not column.missing:
        yield _CONSTANT
