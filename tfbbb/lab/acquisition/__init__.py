"""Which rows to label next: scores of predictions, and rows selected by them.

A score is an array [rows], computed from the `tfbbb.Predictive` of rows without labels;
the larger it is, the more a label is expected to tell. `select` takes the rows of the
largest scores, `select_batch` rows that together tell most.
"""

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.lab.acquisition.scores import (
    bald,
    entropy,
    epistemic_variance,
    random,
)
from tfbbb.lab.acquisition.selection import select, select_batch

__all__ = [
    "bald",
    "entropy",
    "epistemic_variance",
    "random",
    "select",
    "select_batch",
]
