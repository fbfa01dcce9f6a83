"""Draws that serve the next prediction too."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


class KeptDraws:
    """The draws of the last prediction, whose seed and number the next may share.

    Noise is most of what a prediction of a few rows costs. Threads may share it: the
    draws of one call are never mixed with those of another.
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
        """Returns draws, computed only if they are not those of the last prediction.

        Args:
            compute: Takes a seed, int32 [2], and first and number of rounds, int32 [].
            key: The seed.
            first: Index of the first round.
            count: Number of rounds.
            keep: Whether they may be kept.
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
