"""Sweeps over the factors of q until it does not change."""

from collections.abc import Callable, Sequence

import numpy as np

# Steps are not made smaller than this share of the way to the new factor.
SMALLEST_STEP = 0.02
# Sweeps after which a step that lessens no change becomes smaller.
_PATIENCE = 10


def sweep_until_converged(
    sweep: Callable[[float], float],
    *,
    max_iterations: int,
    tolerance: float,
    step: float = 1.0,
) -> tuple[list[float], bool]:
    """Calls `sweep(step)`, which returns the change of q, until the change is small.

    The step, a share of the way to the new factors, becomes smaller where the changes
    do not.
    """
    changes: list[float] = []
    for _ in range(max_iterations):
        changes.append(sweep(step))
        if changes[-1] <= tolerance:
            return changes, True
        if _has_stagnated(changes):
            step = max(0.5 * step, SMALLEST_STEP)
    return changes, False


def change_of_normal(
    before: tuple[np.ndarray, np.ndarray], after: tuple[np.ndarray, np.ndarray]
) -> float:
    """Returns the largest change of means, in deviations, and of log variances."""
    old, new = (cov if cov.ndim == 1 else np.diag(cov) for _, cov in (before, after))
    moved = np.abs(after[0] - before[0]) / np.sqrt(new)
    return float(max(moved.max(), np.abs(np.log(new / old)).max()))


def _has_stagnated(changes: Sequence[float]) -> bool:
    """Whether the last sweeps have not lessened the changes."""
    count = len(changes)
    return (
        count % _PATIENCE == 0
        and count > _PATIENCE
        and (min(changes[-_PATIENCE:]) > 0.9 * min(changes[:-_PATIENCE]))
    )
