"""Rows that are least like the training rows."""

from dataclasses import dataclass

import numpy as np

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
        familiarity: The percentile of the row among rows like the training rows, from 0
            to 1; None if the model has no `tfbbb.Familiarity`.
        unlike: Sentences about how the row differs from the training rows, if it is
            told apart by its familiarity.
    """

    row: int
    epistemic: float
    ratio: float
    familiarity: float | None = None
    unlike: tuple[str, ...] = ()


def least_like_training(
    split: VarianceSplit, familiarity: np.ndarray | None = None, count: int = 10
) -> list[UnusualRow]:
    """Finds the least familiar rows, or else those of the greatest epistemic part."""
    median = float(np.median(split.epistemic))
    found = []
    keys = [-split.epistemic] + ([] if familiarity is None else [familiarity])
    for row in np.lexsort(keys)[:count].tolist():
        epistemic = float(split.epistemic[row])
        ratio = epistemic / median if median > 0 else 1.0
        familiar = None if familiarity is None else float(familiarity[row])
        found.append(UnusualRow(row, epistemic, ratio, familiar))
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
