"""Cells of rows to predict that cannot be read, or differ from the training rows."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from tfbbb.base.texts import fold_sentences, shown_number
from tfbbb.tables.column import Column
from tfbbb.tables.column_names import ColumnSource, check_columns_exist
from tfbbb.tables.parsed_column import describe_fault
from tfbbb.tables.table_error import TableError
from tfbbb.tables.values import MISSING_DATE


class ReadColumns(dict[str, np.ndarray]):
    """The values of columns by name, as `Column.values` returns them."""

    def __init__(self) -> None:
        super().__init__()
        self.unreadable: dict[str, list[tuple[int, str]]] = {}

    @classmethod
    def read(cls, columns: Iterable[Column], table: ColumnSource) -> "ReadColumns":
        """Reads columns of a table; cells that cannot be read count as missing."""
        found, errors, columns = cls(), [], list(columns)
        check_columns_exist(table, (x.name for x in columns), role="feature")
        for column in columns:
            try:
                parsed = column.parse(table)
            except TableError as error:
                errors.append(str(error))
                continue
            found[column.name] = parsed.inputs(column.dtype)
            if parsed.unreadable is not None:
                cells = column.cells(table).values
                found.unreadable[column.name] = [
                    (row, _describe(column, cells[row].as_py()))
                    for row in np.flatnonzero(parsed.unreadable).tolist()
                ]
        if errors:
            raise TableError(" ".join(errors))
        return found

    def describe_unreadable(self, *without: str) -> str:
        """Returns a sentence on the first unreadable cell of each column."""
        sentences = []
        for name, ((row, fault), *others) in self.unreadable.items():
            cells = "cell" if len(others) == 1 else "cells"
            more = f", and {len(others)} more such {cells}" if others else ""
            if name not in without:
                sentences.append(f"{fault}, in row {row + 1}{more}.")
        return " ".join(sentences)


def _describe(column: Column, value: object) -> str:
    fault = describe_fault(value, column.meaning)
    return f"Column {column.name!r} has {value!r}, which {fault}"


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


class Fault(NamedTuple):
    """Cells of a column that are not as those of the training rows were."""

    kind: str
    rows: np.ndarray
    describe: Callable[[int], str] | None
    example: str = ""


class Faults(NamedTuple):
    """What is not as in training in rows to predict."""

    num_rows: int
    columns: dict[str, list[Fault]]

    def by_row(self) -> list[list[str]]:
        """Returns the sentences about each row, mostly none."""
        found: list[list[str]] = [[] for _ in range(self.num_rows)]
        for fault in itertools.chain(*self.columns.values()):
            if fault.describe is not None:
                for row in fault.rows.tolist():
                    found[row].append(fault.describe(row))
        return [fold_sentences(given) if given else given for given in found]

    def by_column(self) -> ColumnFaults:
        """Returns how many rows have which fault in each column."""
        columns = {
            name: {fault.kind: (len(fault.rows), fault.example) for fault in faults}
            for name, faults in self.columns.items()
        }
        return ColumnFaults(self.num_rows, columns)


class RowWarnings:
    """Finds values that the training rows did not have, row by row."""

    def __init__(self, columns: Sequence[Column]):
        self._columns = tuple(columns)
        self._categories = {
            column.name: np.array(column.categories, dtype=object)
            for column in self._columns
            if column.kind == "categorical"
        }
        self._numeric = [c for c in self._columns if c.kind == "numeric"]
        ends = [(np.dtype(c.dtype).type, c.low, c.high) for c in self._numeric]
        low = [type_(-np.inf if x is None else x) for type_, x, _ in ends]
        high = [type_(np.inf if x is None else x) for type_, _, x in ends]
        self._low, self._high = np.array(low), np.array(high)

    def covers(self, numbers: np.ndarray) -> bool:
        """Whether training had values like all those of numeric columns, [n, d]."""
        low, high = numbers.min(axis=0), numbers.max(axis=0)
        return bool(self._within(low, high).all())

    def _within(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        # Extremes beside a missing value are NaN, which is not within.
        return (low >= self._low) & (high <= self._high)

    def find(
        self,
        values: Mapping[str, np.ndarray],
        unreadable: Mapping[str, list[tuple[int, str]]] | None = None,
    ) -> Faults:
        """Returns the faults of rows, of which unreadable cells count as missing."""
        unusual = set()
        if self._numeric:
            numbers = np.stack([values[column.name] for column in self._numeric])
            low, high = numbers.min(axis=1), numbers.max(axis=1)
            within = self._within(low, high)
            unusual = {self._numeric[place].name for place in np.flatnonzero(~within)}
        found = {}
        for column in self._columns:
            cells = dict((unreadable or {}).get(column.name, ()))
            if column.kind != "numeric" or column.name in unusual or cells:
                faults = self._faults(column, values[column.name], cells)
                if some := [fault for fault in faults if len(fault.rows)]:
                    found[column.name] = some
        return Faults(len(next(iter(values.values()))), found)

    def _faults(
        self, column: Column, values: np.ndarray, unreadable: Mapping[int, str]
    ) -> Iterator[Fault]:
        name = f"Column {column.name!r}"
        is_text = column.kind == "categorical"
        if column.kind == "numeric":
            missing = np.isnan(values)
        else:
            missing = values == ("" if is_text else MISSING_DATE)
        empty = missing.copy()
        if unreadable:
            empty[list(unreadable)] = False
            example = next(iter(unreadable.values())).removeprefix(f"{name} has ")
            yield Fault(
                "unreadable",
                np.array(list(unreadable)),
                lambda row: f"{unreadable[row]} and counts as missing.",
                example,
            )
        if not column.missing:
            assumed = "the mean of training is assumed"
            if is_text and len(self._categories[column.name]):
                assumed = "the mean of the categories is assumed"
            elif is_text:
                assumed = "it counts as an unknown category"
            said = f"{name} has no value; {assumed}."
            yield Fault("missing", np.flatnonzero(empty), lambda row: said)
        elif missing.all():
            yield Fault("empty", np.flatnonzero(empty), None)
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
        is_boolean = column.meaning == "boolean"
        if low is None or high is None or (is_boolean and low < high):
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
    text = str(np.datetime64(int(np.floor(value)), "s")).replace("T", " ")
    return text.removesuffix(" 00:00:00")
