"""What is said of a table that has too few rows of some kind."""

from collections.abc import Iterator

import numpy as np

from tfbbb.base.texts import fold_sentences
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.preparation import Prepared

# The standard error of a coverage of 90 % is then 5 %.
_FEW_ROWS = 40


def remarks_on_scarce_rows(prepared: Prepared, members: MemberRows) -> list[str]:
    """Returns a sentence for each kind of rows of which there are too few."""
    found = []
    num_rows = prepared.num_rows
    if num_rows < _FEW_ROWS:
        found.append(f"The table has {num_rows} rows, so its figures are uncertain.")
    if prepared.schema.task == "classification":
        found += fold_sentences(
            _rare_classes(prepared.schema.classes, prepared.rows.targets(), members)
        )
    elif members.weights is not None:
        found += _constant_targets(prepared.rows.targets(), members.weights)
    return found


def _rare_classes(
    names: tuple[str, ...], targets: np.ndarray, members: MemberRows
) -> Iterator[str]:
    least = max(members.num_folds, 2)
    counts = np.bincount(targets.ravel(), minlength=len(names))
    for name, count in zip(names, counts.tolist(), strict=True):
        if count >= least:
            continue
        rows = "1 training row" if count == 1 else f"{count} training rows"
        few = f", fewer than the {members.num_folds} folds" if members.num_folds else ""
        yield (
            f"The class {name!r} has {rows}{few}, too few to learn it and to measure "
            "it; add rows, or merge it with another class."
        )


def _constant_targets(targets: np.ndarray, weights: np.ndarray) -> Iterator[str]:
    values = targets.reshape(len(targets), -1)[:, :1]
    least = np.min(np.where(weights > 0, values, np.inf), axis=0)
    greatest = np.max(np.where(weights > 0, values, -np.inf), axis=0)
    if number := int(np.sum(least == greatest)):
        yield (
            f"The target has a single value in the training rows of {number} of "
            f"{len(least)} members: it differs in very few rows, too few to learn why."
        )
