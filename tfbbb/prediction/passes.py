"""The compiled functions that a prediction runs."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfbbb.base.types import Tensor
from tfbbb.prediction.answers import Answers, Summary
from tfbbb.prediction.properties import Operation, Sizes


class Passes:
    """Compiled passes through one network by one method, with fixed weights.

    Lists with one element for each output of the network are in the order of the
    outputs. The passes keep the draws of the last prediction for the next prediction
    with the same seed and number: drawing noise is most of the cost of a prediction of
    a few rows. Threads may share the passes: two calls never mix their draws.

    Args:
        draw: Takes a seed, int32 [2], and first and number of rounds, int32 [], and
            returns the noise and the weights of these rounds.
        summaries: Takes inputs and draws, and returns the summaries of the rows over
            all draws, and the outputs.
        sums: Takes the same, and returns the sums that make a summary, and the outputs,
            [rows, S, ..., P].
        outputs: Takes the same, and returns the outputs alone.
        merge: Takes the sums of two blocks of draws of the same rows, and returns
            the sums of both.
        summarize: Takes the sums of one output, and returns its summary.
        coherent: Returns passes with the same weights whose draws are coherent
            functions: all rows share the drawn weights.
        sizes: The sizes of a pass.
        answers: The answers about each output's predictive distribution.
        operations: Whether each operation of the network is exact, if moments are
            propagated; empty if the method draws.
        is_compiled: Whether a prediction has compiled the functions.
        groups: Takes inputs and returns the index of each row's group, [rows], or None
            without groups.
    """

    def __init__(
        self,
        *,
        draw: Callable[[Any, Any, Any], Any],
        summaries: Callable[[Tensor, Any], tuple[list[Summary], list[Any]]],
        sums: Callable[[Tensor, Any], tuple[list[Any], list[Any]]],
        outputs: Callable[[Tensor, Any], list[Any]],
        merge: Callable[[Any, Any], Any],
        summarize: Callable[[Any], Summary],
        coherent: Callable[[], "Passes"],
        sizes: Sizes,
        answers: Sequence[Answers],
        operations: tuple[Operation, ...],
        is_compiled: bool = False,
        groups: Callable[[Tensor], Any] = lambda inputs: None,
    ):
        self._draw = draw
        self.summaries = summaries
        self.sums = sums
        self.outputs = outputs
        self.merge = merge
        self.summarize = summarize
        self.coherent = coherent
        self.sizes = sizes
        self.answers = answers
        self.operations = operations
        self.is_compiled = is_compiled
        self.groups = groups
        self._kept: tuple[Any, Any] = (None, None)

    def draws(self, key: tuple[int, int], first: int, count: int, keep: bool) -> Any:
        """Returns the noise and the weights of some rounds.

        Args:
            key: Stream and seed of the draws.
            first: Index of the first round.
            count: Number of rounds.
            keep: Whether to keep the draws for the next prediction.
        """
        asked = (key, first, count)
        kept, draws = self._kept
        if kept == asked:
            return draws
        draws = self._draw(
            tf.constant(key, tf.int32),
            tf.constant(first, tf.int32),
            tf.constant(count, tf.int32),
        )
        self.is_compiled = True
        if keep:
            self._kept = (asked, draws)
        return draws


# Takes numbers of rows and of samples.
PassesFor = Callable[[int, int], Passes]
