"""How far conformal intervals reach."""

import math
from collections.abc import Sequence

import numpy as np

# (n + 1) * level is a whole number for most levels of interest, but for rounding.
_ROUNDING = 1e-9


def conformal_reach(scores: Sequence[Sequence[float]], level: float) -> np.ndarray:
    """Returns how far intervals of a level reach from the mean, [k].

    That is the j-th smallest score, `j = ceil((n + 1) * level)`, of each target.

    Args:
        scores: Sorted scores of n held-out rows for each target, [k, n].
        level: Probability of the interval.

    Raises:
        ValueError: For a level that n rows are too few for.
    """
    num_rows = len(scores[0])
    rank = math.ceil((num_rows + 1) * level - _ROUNDING)
    if rank > num_rows:
        needed = math.ceil(level / (1.0 - level) - _ROUNDING)
        raise ValueError(
            f"An interval of this level takes {needed} held-out rows to promise; "
            "pass more to `recalibrate`, or ask for a lower level. "
            f"Received: level={level}, with {num_rows} held-out rows"
        )
    return np.array(scores)[:, max(rank, 1) - 1]
