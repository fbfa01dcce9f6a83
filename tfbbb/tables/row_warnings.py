"""Cells of rows to predict that cannot be read, or differ from the training rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from tfbbb.base.texts import fold_sentences, shown_number
from tfbbb.tables.column import Column
from tfbbb.tables.column_names import ColumnSource, check_columns_exist
from tfbbb.tables.notations.words import BooleanNotation
from tfbbb.tables.table_error import TableError
from tfbbb.tables.values import MISSING_DATE


class ReadColumns(dict[str, np.ndarray]):
    """The values of columns by name, as `Column.values` returns them."""

    def __init__(
        self,
        values: dict[str, np.ndarray],
        unreadable: dict[str, list[tuple[int, str]]] | None = None,
    ):
        super().__init__(values)
        self.unreadable = unreadable or {}

    @classmethod
    def read(cls, columns: Iterable[Column], table: ColumnSource) -> "ReadColumns":
        """Reads columns of a table.

        A cell that is not in the notation of its column counts as missing.
        """
        values: dict[str, np.ndarray] = {}
        unreadable, errors = {}, []
        columns = list(columns)
        check_columns_exist(table, (x.name for x in columns), role="feature")
        for column in columns:
            try:
                parsed = column.parse(table)
            except TableError as error:
                errors.append(str(error))
                continue
            values[column.name] = parsed.inputs(column.dtype)
            if parsed.unreadable is not None:
                cells = column.cells(table)
                unreadable[column.name] = [
                    (int(row), _describe(column, cells.values[int(row)].as_py()))
                    for row in np.flatnonzero(parsed.unreadable)
                ]
        if errors:
            raise TableError(" ".join(errors))
        return cls(values, unreadable)

    def without_unseen_levels(self, columns: Iterable[Column]) -> "ReadColumns":
        """Returns the columns; an unseen level of an ordered column is readable."""
        ordered = {column.name for column in columns if column.meaning == "ordered"}
        others = {
            name: rows for name, rows in self.unreadable.items() if name not in ordered
        }
        return ReadColumns(self, others)

    def describe_unreadable(self) -> str:
        """Returns a sentence on the first unreadable cell of each column."""
        sentences = []
        for (row, fault), *others in self.unreadable.values():
            more = ""
            if others:
                cells = "cell" if len(others) == 1 else "cells"
                more = f", and {len(others)} more such {cells}"
            sentences.append(f"{fault}, in row {row + 1}{more}.")
        return " ".join(sentences)


def _describe(column: Column, value: object) -> str:
    what = f"no {column.meaning}"
    if isinstance(value, float):
        what = "infinite in single precision"
    if column.meaning == "ordered":
        what = "none of its ordered texts"
    return f"Column {column.name!r} has {value!r}, which is {what}"


# What is wrong with a cell, and how a sentence says it of some.
_KINDS = {
    "unreadable": "{} cannot be read, such as {}",
    "missing": "{} lack a value",
    "empty": "{} lack a value",
    "unseen": "{} have a category unseen in training, such as {}",
    "outside": "{} are outside the range of training, {}",
}


class ColumnFaults(NamedTuple):
    """The faults of the columns of rows to predict."""

    num_rows: int
    columns: Mapping[str, Mapping[str, tuple[int, str]]]

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> "ColumnFaults":
        """Returns the faults of the rows of all parts."""
        num_rows, columns = 0, dict[str, dict[str, tuple[int, str]]]()
        for rows, faults in parts:
            num_rows += rows
            for name, kinds in faults.items():
                known = columns.setdefault(name, {})
                for kind, (number, example) in kinds.items():
                    before, first = known.get(kind, (0, example))
                    known[kind] = before + number, first
        return ColumnFaults(num_rows, columns)

    def describe(self) -> list[str]:
        """Returns a sentence about each column with a fault in most rows."""
        sentences = []
        for name, kinds in self.columns.items():
            total = sum(number for number, _ in kinds.values())
            if 2 * total <= self.num_rows:
                continue
            parts = "; ".join(
                text.format(*kinds[kind])
                for kind, text in _KINDS.items()
                if kind in kinds
            )
            rows = "1 row" if self.num_rows == 1 else f"{self.num_rows} rows"
            sentences.append(
                f"Column {name!r} is not as in training in {total} of {rows}: {parts}."
            )
        return sentences

    def useless(self, *, blank: bool) -> list[str]:
        """Returns the columns of which a model knows no cell."""
        found = []
        for name, kinds in self.columns.items():
            useless = sum(
                number for kind, (number, _) in kinds.items() if kind != "outside"
            )
            decisive = {"unreadable", "unseen"} | ({"missing"} if blank else set())
            if useless == self.num_rows and decisive & kinds.keys():
                found.append(name)
        return found


_SHOW_NUMBER = partial(shown_number, digits=6)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Fault(NamedTuple):
    """Cells of a column that are not as those of the training rows were."""

    kind: str
    rows: np.ndarray
    describe: Callable[[int], str] | None
    example: str = ""


@dataclass(frozen=True)
class Faults:
    """What is not as in training in rows to predict."""

    num_rows: int
    columns: dict[str, list[Fault]]

    def by_row(self) -> list[list[str]]:
        """Returns the sentences about each row, mostly none."""
        found: list[list[str]] = [[] for _ in range(self.num_rows)]
        for faults in self.columns.values():
            for fault in faults:
                if fault.describe is not None:
                    for row in fault.rows.tolist():
                        found[row].append(fault.describe(row))
        return [fold_sentences(given) if given else given for given in found]

    def by_column(self) -> ColumnFaults:
        """Returns how many rows have which fault in each column."""
        return ColumnFaults(
            self.num_rows,
            {
                name: {fault.kind: (len(fault.rows), fault.example) for fault in faults}
                for name, faults in self.columns.items()
            },
        )

    def with_unreadable(self, cells: Mapping[str, list[tuple[int, str]]]) -> "Faults":
        """Returns the faults with cells that count as missing, being unreadable."""
        columns = dict(self.columns)
        for name, found in cells.items():
            said, places = dict(found), [row for row, _ in found]

            def describe(row: int, said: dict[int, str] = said) -> str:
                return f"{said[row]} and counts as missing."

            example = said[places[0]].removeprefix(f"Column {name!r} has ")
            others = []
            for fault in columns.get(name, []):
                if fault.kind in ("missing", "empty"):
                    rows = np.setdiff1d(fault.rows, places)
                    fault = fault._replace(rows=rows)
                if len(fault.rows):
                    others.append(fault)
            unreadable = Fault("unreadable", np.array(places), describe, example)
            columns[name] = [*others, unreadable]
        return Faults(self.num_rows, columns)


class RowWarnings:
    """Finds values that the training rows did not have, row by row.

    A missing value in a column that was complete in training is replaced by the mean,
    also of categories. Values outside the range of the
    training rows, and categories that these did not have, are extrapolation.
    """

    def __init__(self, columns: Sequence[Column]):
        self._columns = tuple(columns)
        self._categories = {
            column.name: np.array(column.categories, dtype=object)
            for column in self._columns
            if column.kind == "categorical"
        }
        self._numeric = [c for c in self._columns if c.kind == "numeric"]
        self._low, self._high = (
            np.array(
                [
                    np.dtype(column.dtype).type(other if x is None else x)
                    for column, x in zip(self._numeric, found, strict=True)
                ]
            )
            for found, other in (
                ([c.low for c in self._numeric], -np.inf),
                ([c.high for c in self._numeric], np.inf),
            )
        )

    def find(self, values: Mapping[str, np.ndarray]) -> Faults:
        """Returns the faults of rows."""
        num_rows = len(next(iter(values.values())))
        unusual = set()
        if self._numeric:
            numbers = np.stack([values[column.name] for column in self._numeric])
            extremes = numbers.min(axis=1), numbers.max(axis=1)
            unusual = {column.name for column in self._unusual(*extremes)}
        suspects = [
            column
            for column in self._columns
            if column.kind != "numeric" or column.name in unusual
        ]
        return self._found(suspects, values, num_rows)

    def find_in_matrix(self, matrix: np.ndarray) -> Faults:
        """Returns the faults of rows of a model with numeric columns alone."""
        suspects = self._unusual(matrix.min(axis=0), matrix.max(axis=0))
        places = {column.name: place for place, column in enumerate(self._columns)}
        values = {column.name: matrix[:, places[column.name]] for column in suspects}
        return self._found(suspects, values, len(matrix))

    def _found(
        self, suspects: list[Column], values: Mapping[str, np.ndarray], num_rows: int
    ) -> Faults:
        found = {}
        for column in suspects:
            faults = [
                x for x in self._faults(column, values[column.name]) if len(x.rows)
            ]
            if faults:
                found[column.name] = faults
        return Faults(num_rows, found)

    def _unusual(self, low: np.ndarray, high: np.ndarray) -> list[Column]:
        """Returns the numeric columns with extremes that training did not have."""
        # The extremes of a column with a missing value are NaN, which is not within.
        within = (low >= self._low) & (high <= self._high)
        return [self._numeric[place] for place in np.flatnonzero(~within)]

    def _faults(self, column: Column, values: np.ndarray) -> Iterator[Fault]:
        name = f"Column {column.name!r}"
        is_text = column.kind == "categorical"
        if is_text:
            missing = values == ""
        elif column.kind == "date":
            missing = values == MISSING_DATE
        else:
            missing = np.isnan(values)
        if not column.missing:
            assumed = "the mean of training is assumed"
            if is_text:
                listed = len(self._categories[column.name])
                assumed = "it counts as an unknown category"
                if listed:
                    assumed = "the mean of the categories is assumed"
            said = f"{name} has no value; {assumed}."
            yield Fault("missing", np.flatnonzero(missing), lambda row: said)
        elif missing.all():
            yield Fault("empty", np.arange(len(values)), None)
        if is_text:
            known = self._categories[column.name]
            if not len(known) or column.buckets:
                return
            unseen = np.flatnonzero(~missing & ~np.isin(values, known))
            yield Fault(
                "unseen",
                unseen,
                lambda row: (
                    f"{name} has the category {values[row]!r}, unseen in training."
                ),
                repr(values[unseen[0]]) if len(unseen) else "",
            )
            return
        low, high = column.low, column.high
        boolean = isinstance(column.notation, BooleanNotation)
        if low is None or high is None or (boolean and low < high):
            return
        show = show_date if column.kind == "date" else _SHOW_NUMBER
        outside = np.flatnonzero(~missing & ((values < low) | (values > high)))
        bounds = f"{show(low)} to {show(high)}"
        yield Fault(
            "outside",
            outside,
            lambda row: (
                f"{name} is {show(values[row])}, outside the range of training, "
                f"{bounds}."
            ),
            f"{bounds}, such as {show(values[outside[0]])}" if len(outside) else "",
        )


def show_date(value: float) -> str:
    """Writes seconds since 1970 as a date, with the time unless it is midnight."""
    try:
        moment = _EPOCH + timedelta(seconds=float(value))
    except OverflowError:
        return f"{value:.0f} s since 1970"
    text = f"{moment:%Y-%m-%d %H:%M:%S}"
    return text.removesuffix(" 00:00:00")
