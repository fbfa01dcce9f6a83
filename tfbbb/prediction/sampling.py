"""Predictions from draws, block by block, within bounded memory."""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tfbbb.base.types import Tensor
from tfbbb.prediction.blocks import block_sizes
from tfbbb.prediction.passes import Passes
from tfbbb.prediction.result import Predictive

# The streams of draws: of predictions, and of pilots that find the number of draws.
MAIN, PILOT = 0, 1
# 32 MB of float64, in which densities are computed.
_OUTPUTS_AT_A_TIME = 1 << 22


class Sampling:
    """S draws of the outputs for some rows.

    Args:
        passes: The passes through the network.
        inputs: Tensors whose leading dimension is the number of rows.
        num_samples: The least number S of draws; whole rounds are drawn.
        seed: Seed of the draws.
        max_floats: How many numbers may be in memory at a time.
        stream: The stream of the seed's draws.

    Attributes:
        num_samples: Number S of draws.
    """

    def __init__(
        self,
        passes: Passes,
        inputs: Tensor,
        num_samples: int,
        seed: int,
        max_floats: int,
        stream: int = MAIN,
    ):
        self._passes = passes
        self._inputs = inputs
        self._seed = seed
        self._stream = stream
        self._max_floats = max_floats
        self._num_rows = int(tf.nest.flatten(inputs)[0].shape[0])
        self._rounds = passes.sizes.num_rounds(num_samples)
        self.num_samples = 2 * passes.sizes.members * self._rounds
        self._block = block_sizes(
            passes.sizes, self._num_rows, self._rounds, max_floats
        )

    def results(self) -> list[Predictive]:
        """Returns the predictive distribution of each row, for each output."""
        summaries, outputs = self._summaries()
        groups = self._passes.groups(self._inputs)
        return [
            Predictive(
                answers,
                found,
                functools.partial(self._slices, number, outputs),
                self.num_samples,
                self._seed,
                functools.partial(self._functions, number),
                operations=self._passes.operations,
                groups=groups,
            )
            for number, (answers, found) in enumerate(
                zip(self._passes.answers, summaries, strict=True)
            )
        ]

    def _summaries(self) -> tuple[list[Any], list[Any] | None]:
        """Returns the summary of each output, and the outputs if they fit in memory."""
        if self._block == (self._num_rows, self._rounds):
            draws = self._draws(0, self._rounds)
            return self._passes.summaries(self._inputs, draws)
        per_row = self.num_samples * self._passes.sizes.outputs
        kept: list[list[Any]] | None = []
        if self._num_rows * per_row > self._max_floats:
            kept = None
        totals: Any = None
        # Rounds are the outer loop, because all rows share the draws.
        for first, count in self._round_blocks():
            parts, outputs = [], []
            draws = self._draws(first, count)
            for rows in self._row_blocks(self._block[0]):
                found, drawn = self._passes.sums(self._slice_inputs(rows), draws)
                parts.append(found)
                if kept is not None:
                    outputs.append(drawn)
            block = [_join(list(x)) for x in zip(*parts, strict=True)]
            if kept is not None:
                kept.append([tf.concat(x, 0) for x in zip(*outputs, strict=True)])
            totals = (
                block
                if totals is None
                else [
                    self._passes.merge(x, y) for x, y in zip(totals, block, strict=True)
                ]
            )
        summaries = [self._passes.summarize(found) for found in totals]
        if kept is None:
            return summaries, None
        return summaries, [tf.concat(x, 1) for x in zip(*kept, strict=True)]

    def _slices(self, number: int, outputs: list[Any] | None) -> Iterator[Any]:
        """Yields one output under all draws, for one slice of rows after another."""
        per_row = self.num_samples * self._passes.sizes.outputs
        for rows in self._row_blocks(max(1, _OUTPUTS_AT_A_TIME // per_row)):
            if outputs is not None:
                yield outputs[number][rows]
            else:
                yield tf.concat([x[number] for x in self._outputs(rows)], axis=1)

    def _outputs(self, rows: slice) -> Iterator[list[Any]]:
        """Yields all outputs of some rows, for one block of rounds after another."""
        for first, count in self._round_blocks():
            draws = self._draws(first, count)
            parts = [
                self._passes.outputs(self._slice_inputs(part), draws)
                for part in self._row_blocks(self._block[0], rows)
            ]
            yield [tf.concat(x, axis=0) for x in zip(*parts, strict=True)]

    def _functions(self, number: int, n: int, seed: int) -> Any:
        """Returns n coherent draws of one output's mean, [rows, n, ..., k].

        All rows see the same n draws of the weights, independent of each other.
        """
        members = self._passes.sizes.members
        weights = self._passes.answers[number].member_weights
        if weights is None:
            rounds, chosen = np.divmod(np.arange(n), members)
        else:
            # NumPy takes no negative seed.
            generator = np.random.default_rng([seed % 2**32, n])
            chosen = generator.choice(members, size=n, p=weights)
            # Each draw of a member is from a round of its own.
            rounds = np.zeros(n, np.int64)
            for member in range(members):
                mine = chosen == member
                rounds[mine] = np.arange(mine.sum())
        # One half of each round: the other half is its mirror image.
        num_samples = 2 * members * int(rounds.max() + 1)
        passes = self._passes.coherent()
        drawn = Sampling(passes, self._inputs, num_samples, seed, self._max_floats)
        outputs = tf.concat([x[number] for x in drawn._outputs(slice(None))], axis=1)
        rows, _, *event = outputs.shape
        pairs = tf.reshape(outputs, [rows, -1, 2, members, *event])
        functions = tf.reshape(pairs[:, :, 0], [rows, -1, *event])
        functions = tf.gather(functions, rounds * members + chosen, axis=1)
        return passes.answers[number].ask("mean", functions)

    def _slice_inputs(self, rows: slice) -> Any:
        if rows == slice(None):
            return self._inputs
        return tf.nest.map_structure(lambda x: x[rows], self._inputs)

    def _draws(self, first: int, count: int) -> Any:
        # Draws that fit into one block may be kept.
        return self._passes.draws(
            (self._stream, self._seed),
            first,
            count,
            keep=self._block[1] == self._rounds,
        )

    def _round_blocks(self) -> Iterator[tuple[int, int]]:
        block = self._block[1]
        for first in range(0, self._rounds, block):
            yield first, min(block, self._rounds - first)

    def _row_blocks(self, block: int, rows: slice = slice(None)) -> Iterator[slice]:
        start, stop, _ = rows.indices(self._num_rows)
        for first in range(start, stop, block):
            yield slice(first, min(first + block, stop))


def _join(parts: list[Any]) -> Any:
    """Joins the sums of blocks of rows into the sums of all rows."""

    def join(*values: tf.Tensor) -> tf.Tensor:
        # The number of draws has no axis of rows: every block has the same number.
        return tf.concat(values, 0) if values[0].shape.rank else values[0]

    return tf.nest.map_structure(join, *parts)
