"""The compiled passes through a network, and predictions made of them."""

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from tfbbb.base.nested import leaves, map_leaves
from tfbbb.base.types import Structure, Tensor
from tfbbb.prediction.answers import Answers, Summary
from tfbbb.prediction.blocks import Sizes, block_sizes
from tfbbb.prediction.compiled import joined
from tfbbb.prediction.gathered import SparseRows
from tfbbb.prediction.result import Predictive

# The streams of draws: of predictions, and of pilots that find the number of draws.
MAIN, PILOT = 0, 1
# 32 MB of float64, in which densities are computed.
_OUTPUTS_AT_A_TIME = 1 << 22

# The sums of one output that can be merged, and the noise and weights of some draws.
Sums = dict[str, Tensor]
Draws = Structure


class _Rows(NamedTuple):
    """Rows to predict, and how many of them and of their draws one block holds."""

    inputs: Structure
    num_rows: int
    rounds: int
    block_rows: int
    block_rounds: int
    key: tuple[int, int]
    max_floats: int


@dataclass(eq=False, repr=False)
class Passes:
    """Compiled passes through one network by one plan, with fixed weights.

    Lists with one element for each output of the network are in the order of the
    outputs. The passes keep the draws of the last prediction for the next prediction
    with the same seed and number: drawing noise is most of the cost of a prediction of
    a few rows. Threads may share the passes: two calls never mix their draws.
    """

    _: KW_ONLY
    # Takes a seed, int32 [2], and first and number of rounds, int32 [], and returns the
    # noise and the weights of these rounds.
    draw: Callable[[Tensor, Tensor, Tensor], Draws]
    # Takes inputs and draws, and returns the summaries of the rows over all draws, and
    # the outputs.
    summaries: Callable[[Structure, Draws], tuple[list[Summary], list[Tensor]]]
    # Takes the same, and returns the sums that make a summary, and the outputs, [rows,
    # S, ..., P].
    sums: Callable[[Structure, Draws], tuple[list[Sums], list[Tensor]]]
    # Takes the same, and returns the outputs alone.
    outputs: Callable[[Structure, Draws], list[Tensor]]
    # Takes the sums of two blocks of draws of the same rows, and returns those of both.
    merge: Callable[[Sums, Sums], Sums]
    # Takes the sums of one output, and returns its summary.
    summarize: Callable[[Sums], Summary]
    # Returns passes with the same weights whose draws are coherent functions: all rows
    # share the drawn weights.
    coherent: Callable[[], "Passes"]
    sizes: Sizes
    # About each output's predictive distribution.
    answers: Sequence[Answers]
    # How many rows the functions pass through the network at a time, of any number.
    rows_at_a_time: int = sys.maxsize
    # Takes inputs and returns the index of each row's group, [rows], or None.
    groups: Callable[[Structure], Tensor | None] = lambda inputs: None
    # Whether the outputs of a row depend on the rows beside it, so that all rows pass
    # through the network together, one draw after the other.
    mixes_rows: bool = False
    _kept: tuple[tuple[tuple[int, int], int, int] | None, Draws] = (None, None)

    def predict(
        self,
        inputs: Structure,
        num_samples: int,
        seed: int,
        max_floats: int,
        stream: int = MAIN,
        must_be_finite: bool = True,
    ) -> list[Predictive]:
        """Returns the predictive distribution of each row, for each output."""
        rows = self._rows(inputs, num_samples, (stream, seed), max_floats)
        summaries, outputs = self._summarize_rows(rows)
        groups = self.groups(inputs)
        return [
            Predictive(
                answers,
                found,
                functools.partial(self._slices, rows, number, outputs),
                self._num_draws(rows),
                seed,
                functools.partial(self._functions, rows, number),
                groups=groups,
                must_be_finite=must_be_finite,
            )
            for number, (answers, found) in enumerate(
                zip(self.answers, summaries, strict=True)
            )
        ]

    def _rows(
        self, inputs: Structure, num_samples: int, key: tuple[int, int], max_floats: int
    ) -> _Rows:
        num_rows = int(leaves(inputs)[0].shape[0])
        rounds = self.sizes.num_rounds(num_samples)
        most = min(num_rows, self.rows_at_a_time)
        block_rows, block_rounds = block_sizes(self.sizes, most, rounds, max_floats)
        if self.mixes_rows:
            numbers = max(self.sizes.drawn, 4 * num_rows * self.sizes.outputs)
            per_round = 2 * self.sizes.members * numbers
            block_rows = num_rows
            block_rounds = max(1, min(rounds, max_floats // per_round))
        elif block_rows == most:
            # The functions cut larger blocks, of which all outputs are in memory.
            outputs = 2 * self.sizes.members * block_rounds * self.sizes.outputs
            # Joining their parts takes as much again.
            blocks = max(1, max_floats // 4 // outputs // most)
            block_rows = min(num_rows, blocks * most)
        for x in leaves(inputs):
            if isinstance(x, SparseRows):
                block_rows = min(block_rows, max(1, max_floats // 4 // x.shape[1]))
        if block_rows == num_rows:
            inputs = map_leaves(
                lambda x: x[:] if isinstance(x, SparseRows) else x, inputs
            )
        block = block_rows, block_rounds
        return _Rows(inputs, num_rows, rounds, *block, key, max_floats)

    def _num_draws(self, rows: _Rows) -> int:
        return 2 * self.sizes.members * rows.rounds

    def _summarize_rows(self, rows: _Rows) -> tuple[list[Summary], list[Tensor] | None]:
        """Returns the summary of each output, and the outputs if they fit in memory."""
        if (rows.block_rows, rows.block_rounds) == (rows.num_rows, rows.rounds):
            return self.summaries(rows.inputs, self._draws(rows, 0, rows.rounds))
        per_row = self._num_draws(rows) * self.sizes.outputs
        fits = rows.num_rows * per_row <= rows.max_floats
        kept: list[list[Tensor]] = []
        totals: list[Sums] = []
        # Rounds are the outer loop, because all rows share the draws.
        for first, count in _round_blocks(rows):
            parts, outputs = [], []
            draws = self._draws(rows, first, count)
            for part in _row_blocks(rows, rows.block_rows):
                found, drawn = self.sums(_slice(rows.inputs, part), draws)
                parts.append(found)
                if fits:
                    outputs.append(drawn)
            sums: Any = joined(*parts)
            totals = list(map(self.merge, totals, sums)) if totals else sums
            if fits:
                kept.append([np.concatenate(x, 0) for x in zip(*outputs, strict=True)])
        summaries = [self.summarize(found) for found in totals]
        if not fits:
            return summaries, None
        return summaries, [np.concatenate(x, 1) for x in zip(*kept, strict=True)]

    def _slices(
        self, rows: _Rows, number: int, outputs: list[Tensor] | None
    ) -> Iterator[Tensor]:
        """Yields one output under all draws, for one slice of rows after another."""
        per_row = self._num_draws(rows) * self.sizes.outputs
        size = max(1, _OUTPUTS_AT_A_TIME // per_row)
        if outputs is None and self.mixes_rows:
            size = rows.num_rows
        for part in _row_blocks(rows, size):
            if outputs is not None:
                yield outputs[number][part]
            else:
                yield self._output(rows, number, part)

    def _output(self, rows: _Rows, number: int, chosen: slice = slice(None)) -> Tensor:
        """Returns one output of some rows under all draws, [rows, S, ..., P]."""
        blocks = []
        for first, count in _round_blocks(rows):
            draws = self._draws(rows, first, count)
            parts = [
                self.outputs(_slice(rows.inputs, part), draws)[number]
                for part in _row_blocks(rows, rows.block_rows, chosen)
            ]
            blocks.append(np.concatenate(parts, axis=0))
        return np.concatenate(blocks, axis=1)

    def _functions(self, rows: _Rows, number: int, n: int, seed: int) -> Tensor:
        """Returns n coherent draws of one output's mean, [rows, n, ..., k].

        All rows see the same n draws of the weights, independent of each other.
        """
        members = self.sizes.members
        weights = self.answers[number].member_weights
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
        passes = self.coherent()
        key = MAIN, seed
        drawn = passes._rows(rows.inputs, num_samples, key, rows.max_floats)
        outputs = passes._output(drawn, number)
        num_rows, _, *event = outputs.shape
        pairs = np.reshape(outputs, [num_rows, -1, 2, members, *event])
        functions = np.reshape(pairs[:, :, 0], [num_rows, -1, *event])
        functions = functions[:, rounds * members + chosen]
        return passes.answers[number].ask("mean", functions)

    def _draws(self, rows: _Rows, first: int, count: int) -> Draws:
        """Returns the noise and the weights of some rounds."""
        asked = (rows.key, first, count)
        kept, draws = self._kept
        if kept == asked:
            return draws
        draws = self.draw(
            np.array(rows.key, np.int32),
            np.array(first, np.int32),
            np.array(count, np.int32),
        )
        # Draws that fit into one block are kept.
        if rows.block_rounds == rows.rounds:
            self._kept = (asked, draws)
        return draws


def _slice(inputs: Structure, rows: slice) -> Structure:
    if rows == slice(None):
        return inputs
    return map_leaves(lambda x: x[rows], inputs)


def _round_blocks(rows: _Rows) -> Iterator[tuple[int, int]]:
    for first in range(0, rows.rounds, rows.block_rounds):
        yield first, min(rows.block_rounds, rows.rounds - first)


def _row_blocks(rows: _Rows, size: int, chosen: slice = slice(None)) -> Iterator[slice]:
    start, stop, _ = chosen.indices(rows.num_rows)
    for first in range(start, stop, size):
        yield slice(first, min(first + size, stop))
