"""Rows that are least like the training rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfbbb.base.types import Config
from tfbbb.judging.evaluation.input_encoding import (
    EncodedColumn,
    InputEncoding,
    as_numbers,
)
from tfbbb.judging.explain.rows import Rows
from tfbbb.judging.explain.variance_split import VarianceSplit
from tfbbb.judging.types import Inputs


@dataclass(frozen=True)
class UnusualRow:
    """A row about which the model knows little.

    Attributes:
        row: Index of the row.
        epistemic: Its epistemic variance, or mutual information for classes.
        ratio: That as a multiple of the median row's.
        column: The column whose value is farthest from the training rows; empty if
            they are not known.
        value: The value of this column, a date as text; None if it is missing.
        distance: How far from the training mean, in standard deviations; None for text.
        remark: What is unusual about the value, for people; empty if nothing is.
        familiarity: The percentile of the row among rows like the training rows, from 0
            to 1; None if the model has no `tfbbb.Familiarity`.
        unlike: Sentences about how the row differs from the training rows, if it is
            told apart by its familiarity.
    """

    row: int
    epistemic: float
    ratio: float
    column: str = ""
    value: float | str | None = None
    distance: float | None = None
    remark: str = ""
    familiarity: float | None = None
    unlike: tuple[str, ...] = ()


def least_like_training(
    split: VarianceSplit,
    inputs: Inputs,
    encoding: InputEncoding | None = None,
    *,
    names: Sequence[str] | None = None,
    familiarity: np.ndarray | None = None,
    count: int = 10,
) -> list[UnusualRow]:
    """Finds the least familiar rows, or else those of the greatest epistemic part.

    If the training rows are described by an encoding, each row also names its most
    unusual value: a text that training did not have, else the number farthest from the
    training mean.

    Args:
        split: The uncertainty of the rows.
        inputs: Their inputs: arrays [n] by name, or a matrix [n, d].
        encoding: The inputs of the training rows; None if they are not known.
        names: Names of the columns of a matrix; those of the encoding by default.
        familiarity: The familiarity of the rows, [n]; None if the model has none.
        count: The most rows to return.

    Returns:
        The rows, the least familiar or the most uncertain first.
    """
    if names is None and encoding is not None:
        names = encoding.names
    rows = Rows.read(inputs, names)
    median = float(np.median(split.epistemic))
    found = []
    keys = [-split.epistemic] + ([] if familiarity is None else [familiarity])
    for row in np.lexsort(keys)[:count].tolist():
        epistemic = float(split.epistemic[row])
        ratio = epistemic / median if median > 0 else 1.0
        unusual: Config = {}
        if encoding is not None:
            unusual = _most_unusual(rows, row, encoding)
        if familiarity is not None:
            unusual["familiarity"] = float(familiarity[row])
        found.append(UnusualRow(row, epistemic, ratio, **unusual))
    return found


def rows_outside_training(inputs: Inputs, encoding: InputEncoding) -> dict[str, int]:
    """Counts by column the rows whose value is outside what training has seen.

    That is a number below the least or above the greatest, a missing one where none was
    missing, or a text that no training row had. Columns without such rows are left out.
    """
    rows = Rows.read(inputs, encoding.names)
    counts = {}
    for column in encoding.columns:
        outside = _outside(column, rows.columns[column.name])
        if number := int(outside.sum()):
            counts[column.name] = number
    return counts


def _outside(column: EncodedColumn, values: np.ndarray) -> np.ndarray:
    if column.categories is not None:
        known = frozenset(column.categories)
        found = [column.complete and str(text) not in known for text in values.tolist()]
        return np.array(found, dtype=bool)
    numbers = as_numbers(values)
    missing = ~np.isfinite(numbers)
    beyond = (numbers < column.least) | (numbers > column.greatest)
    return beyond | (missing & (not column.missing))


def _most_unusual(rows: Rows, row: int, encoding: InputEncoding) -> Config:
    """Returns the fields of the column whose value is farthest from training."""
    best: Config = {}
    farthest = 0.0
    for column in encoding.columns:
        value = rows.columns[column.name][row]
        if column.categories is None:
            (value,) = as_numbers(np.array([value]))
        outside = bool(_outside(column, np.array([value]))[0])
        number = column.categories is None and bool(np.isfinite(float(value)))
        distance = abs(float(value) - column.mean) / column.scale if number else None
        # A text or a gap that training did not have is farther than any number.
        size = np.inf if outside and distance is None else distance or 0.0
        if size > farthest:
            farthest = size
            shown: float | str | None = None
            if column.categories is not None:
                shown = str(value)
            elif number:
                shown = column.show(value) if column.date else float(value)
            best = {
                "column": column.name,
                "value": shown,
                "distance": distance,
                "remark": _remark(column, value) if outside else "",
            }
    return best


def _remark(column: EncodedColumn, value: Any) -> str:
    if column.categories is not None:
        return "no training row has it"
    if np.isnan(value):
        return "no training row misses it"
    side = "below" if value < column.least else "above"
    least, greatest = column.show(column.least), column.show(column.greatest)
    return f"{side} all training rows ({least} to {greatest})"
