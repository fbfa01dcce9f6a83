"""Rows that are least like the training rows."""

from dataclasses import dataclass

import numpy as np

from tfbbb.judging.explain.variance_split import VarianceSplit


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
