"""Draws that the next prediction can use again."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


class KeptDraws:
    """The draws of the last prediction, for the next one with the same seed and number.

    Drawing noise is most of the cost of a prediction of a few rows. Threads may share
    one object: it never mixes the draws of one call with those of another.
    """

    def __init__(self) -> None:
        self._last: tuple[Any, Any] = (None, None)

    def draws(
        self,
        compute: Callable[[Any, Any, Any], Any],
        key: tuple[int, int],
        first: int,
        count: int,
        keep: bool,
    ) -> Any:
        """Returns draws, and computes them unless the last prediction used the same.

        Args:
            compute: Takes a seed, int32 [2], and first and number of rounds, int32 [].
            key: The seed.
            first: Index of the first round.
            count: Number of rounds.
            keep: Whether to keep the draws for the next prediction.
        """
        asked = (key, first, count)
        kept, draws = self._last
        if kept == asked:
            return draws
        draws = compute(
            tf.constant(key, tf.int32),
            tf.constant(first, tf.int32),
            tf.constant(count, tf.int32),
        )
        if keep:
            self._last = (asked, draws)
        return draws
