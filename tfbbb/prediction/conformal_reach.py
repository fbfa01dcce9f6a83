"""How far conformal intervals reach."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tfbbb.types import ArrayLike

# Levels come in single precision too, in which few of interest are exact.
_ROUNDING = 1e-7


def conformal_reach(scores: Sequence[Sequence[float]], level: ArrayLike) -> tf.Tensor:
    """Returns how far intervals of a level reach from the mean, [..., k].

    That is the j-th smallest score, `j = ceil((n + 1) * level)`, of each target, and
    infinitely far for j > n, of which the scores say nothing.

    Example:

    >>> conformal_reach([[0.1, 0.3, 1.5, 2.0]], 0.6).numpy()
    array([1.5])

    Args:
        scores: Sorted scores of n held-out rows for each target, [k, n].
        level: Probabilities of the intervals, [...].
    """
    num_rows = len(scores[0])
    rank = tf.math.ceil((num_rows + 1.0) * (tf.cast(level, tf.float64) - _ROUNDING))
    index = tf.clip_by_value(tf.cast(rank, tf.int32) - 1, 0, num_rows)
    reaches = np.pad(np.array(scores), [(0, 0), (0, 1)], constant_values=np.inf)
    return tf.gather(reaches.T, index)
