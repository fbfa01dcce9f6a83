"""Warnings of rows to predict that differ from the training rows."""

import functools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from tfbbb.base.texts import fold_sentences, shown_number
from tfbbb.tables.column import Column
from tfbbb.tables.notations.boolean import BooleanNotation
from tfbbb.tables.values import MISSING_DATE

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RowWarnings:
    """Finds values that the training rows did not have, row by row.

    A missing value in a column that was complete in training is replaced by the mean,
    or counts as a category that training did not see. Values outside the range of the
    training rows, and categories that these did not have, are extrapolation.

    Args:
        columns: The features of a model.

    Example:
    >>> age = Column.from_numbers("age", np.array([20.0, 80.0]))
    >>> RowWarnings([age]).find({"age": np.float32([30, 95])})
    [[], ["Column 'age' is 95, outside the range of training, 20 to 80."]]
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
            np.array([other if x is None else x for x in found], dtype=np.float32)
            for found, other in (
                ([c.low for c in self._numeric], -np.inf),
                ([c.high for c in self._numeric], np.inf),
            )
        )

    def find(self, values: Mapping[str, np.ndarray]) -> list[list[str]]:
        """Returns the warnings of each row.

        Args:
            values: The values of each column, as `Column.values` returns them.
        """
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

    def find_in_matrix(self, matrix: np.ndarray) -> list[list[str]]:
        """Returns the warnings of each row of a model with numeric columns alone.

        Args:
            matrix: The values `[rows, columns]`, in the order of the columns.
        """
        suspects = self._unusual(matrix.min(axis=0), matrix.max(axis=0))
        places = {column.name: place for place, column in enumerate(self._columns)}
        values = {column.name: matrix[:, places[column.name]] for column in suspects}
        return self._found(suspects, values, len(matrix))

    def _found(
        self, suspects: list[Column], values: Mapping[str, np.ndarray], num_rows: int
    ) -> list[list[str]]:
        found: list[list[str]] = [[] for _ in range(num_rows)]
        for column in suspects:
            for row, sentence in self._describe(column, values[column.name]):
                found[row].append(sentence)
        return [fold_sentences(given) if given else given for given in found]

    def _unusual(self, low: np.ndarray, high: np.ndarray) -> list[Column]:
        """Returns the numeric columns with extremes that training did not have."""
        # The extremes of a column with a missing value are NaN, which is not within.
        within = (low >= self._low) & (high <= self._high)
        return [self._numeric[place] for place in np.flatnonzero(~within)]

    def _describe(self, column: Column, values: np.ndarray) -> list[tuple[int, str]]:
        name = f"Column {column.name!r}"
        if column.kind == "categorical":
            return self._describe_texts(name, column, values)
        if column.kind == "date":
            missing = values == MISSING_DATE
            show = show_date
        else:
            missing = np.isnan(values)
            show = functools.partial(shown_number, digits=6)
        found = []
        if not column.missing:
            mean = "the mean of training is assumed"
            found = [
                (int(row), f"{name} has no value; {mean}.")
                for row in np.flatnonzero(missing)
            ]
        low, high = column.low, column.high
        boolean = isinstance(column.notation, BooleanNotation)
        if low is None or high is None or (boolean and low < high):
            return found
        outside = ~missing & ((values < low) | (values > high))
        bounds = f"outside the range of training, {show(low)} to {show(high)}"
        found += [
            (int(row), f"{name} is {show(values[row])}, {bounds}.")
            for row in np.flatnonzero(outside)
        ]
        return found

    def _describe_texts(
        self, name: str, column: Column, values: np.ndarray
    ) -> list[tuple[int, str]]:
        known = self._categories[column.name]
        found = []
        missing = values == ""
        if not column.missing:
            found = [
                (int(row), f"{name} has no value; it counts as an unknown category.")
                for row in np.flatnonzero(missing)
            ]
        if not len(known) or column.buckets:
            return found
        unseen = ~missing & ~np.isin(values, known)
        found += [
            (int(row), f"{name} has the category {values[row]!r}, unseen in training.")
            for row in np.flatnonzero(unseen)
        ]
        return found


def show_date(value: float) -> str:
    """Writes seconds since 1970 as a date, with the time unless it is midnight.

    Example:
    >>> show_date(86400.0), show_date(90000.0)
    ('1970-01-02', '1970-01-02 01:00:00')
    """
    try:
        moment = _EPOCH + timedelta(seconds=float(value))
    except OverflowError:
        return f"{value:.0f} s since 1970"
    text = f"{moment:%Y-%m-%d %H:%M:%S}"
    return text.removesuffix(" 00:00:00")
