"""Finds columns of a table that a model can't use, or that will not help it."""

from collections.abc import Iterable, Iterator

from service.inspection_process.column_statistics import ColumnStatistics
from tfbbb.data.limits import MAX_CATEGORIES, MIN_ROWS

_MOSTLY = 0.9
_MOST_LEVELS = 20
_FEWEST_IDENTIFIERS = 20


def find_problems(
    columns: Iterable[ColumnStatistics], num_rows: int, *, without_index: bool
) -> list[dict[str, str | None]]:
    """Finds the problems to fix before training, as `column` and `message`."""
    table: list[str] = []
    if without_index:
        table.append("The index that pandas wrote into the table is left out.")
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
        yield "It has no values; leave it out."
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
            yield "It has the same value in every row; nothing can be learned from it."
    elif column.type == "date":
        yield (
            "It holds dates or times, which a model can't read; make them numbers "
            "that matter here (days since a date, the month), or leave it out."
        )
    else:
        yield (
            f"It holds values of type {column.arrow_type!s:.100}, which a model "
            "can't read; make them numbers or text, or leave it out."
        )


def _number_problems(column: ColumnStatistics) -> Iterator[str]:
    if column.infinite:
        yield (
            f"{column.infinite} of its values are infinite in single precision; "
            "empty them, or leave it out."
        )
    if column.known > column.infinite and column.minimum == column.maximum:
        yield "It has the same value in every row; nothing can be learned from it."
    elif column.increases and column.num_rows >= _FEWEST_IDENTIFIERS:
        yield "It grows from row to row, as identifiers do; leave it out if it is one."


def _text_problems(column: ColumnStatistics) -> Iterator[str]:
    others = column.known - column.numbers_in_text
    many = column.distinct is None or column.distinct > _MOST_LEVELS
    if not others:
        yield "It holds numbers written as text; make them numbers if they are some."
    elif many and column.numbers_in_text >= _MOSTLY * column.known:
        yield (
            f"It is mostly numbers, but has the text {column.first_other!r}; correct "
            "it, empty it if the number is missing, or name the column in text_columns."
        )
    elif column.distinct is None:
        yield (
            f"It has more than {MAX_CATEGORIES} distinct texts, or long ones, which "
            "can't be categories; group its values or leave it out."
        )
    elif column.distinct == column.known and column.known >= _FEWEST_IDENTIFIERS:
        yield "Every value is different, as identifiers are; leave it out."
    elif column.distinct == 1 and not column.missing:
        yield "It has the same value in every row; nothing can be learned from it."
