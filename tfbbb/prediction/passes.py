"""The compiled passes through a network, and predictions made of them."""

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfbbb.base.nested import leaves, map_leaves
from tfbbb.base.types import Structure, Tensor
from tfbbb.prediction.answers import Answers, Summary
from tfbbb.prediction.blocks import block_sizes
from tfbbb.prediction.compiled import joined
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.sizes import Sizes
from tfbbb.prediction.sparse_rows import SparseRows

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


class Passes:
    """Compiled passes through one network by one plan, with fixed weights.

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
        rows_at_a_time: How many rows the functions pass through the network at a time,
            however many they are given.
        is_compiled: Whether a prediction has compiled the functions.
        groups: Takes inputs and returns the index of each row's group, [rows], or None
            without groups.
        mixes_rows: Whether the outputs of a row depend on the rows beside it, so that
            all rows pass through the network together, one draw after the other.
    """

    def __init__(
        self,
        *,
        draw: Callable[[Tensor, Tensor, Tensor], Draws],
        summaries: Callable[[Structure, Draws], tuple[list[Summary], list[Tensor]]],
        sums: Callable[[Structure, Draws], tuple[list[Sums], list[Tensor]]],
        outputs: Callable[[Structure, Draws], list[Tensor]],
        merge: Callable[[Sums, Sums], Sums],
        summarize: Callable[[Sums], Summary],
        coherent: Callable[[], "Passes"],
        sizes: Sizes,
        answers: Sequence[Answers],
        rows_at_a_time: int = sys.maxsize,
        is_compiled: bool = False,
        groups: Callable[[Structure], Tensor | None] = lambda inputs: None,
        mixes_rows: bool = False,
    ):
        self._draw = draw
        self._summaries = summaries
        self._sums = sums
        self._outputs = outputs
        self._merge = merge
        self._summarize = summarize
        self._coherent = coherent
        self.sizes = sizes
        self.answers = answers
        self._rows_at_a_time = rows_at_a_time
        self.is_compiled = is_compiled
        self._groups = groups
        self._mixes_rows = mixes_rows
        self._kept: tuple[tuple[tuple[int, int], int, int] | None, Draws] = (None, None)

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
        groups = self._groups(inputs)
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
        most = min(num_rows, self._rows_at_a_time)
        block_rows, block_rounds = block_sizes(self.sizes, most, rounds, max_floats)
        if self._mixes_rows:
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
            return self._summaries(rows.inputs, self._draws(rows, 0, rows.rounds))
        per_row = self._num_draws(rows) * self.sizes.outputs
        fits = rows.num_rows * per_row <= rows.max_floats
        kept: list[list[Tensor]] = []
        totals: list[Sums] = []
        # Rounds are the outer loop, because all rows share the draws.
        for first, count in _round_blocks(rows):
            parts, outputs = [], []
            draws = self._draws(rows, first, count)
            for part in _row_blocks(rows, rows.block_rows):
                found, drawn = self._sums(_slice(rows.inputs, part), draws)
                parts.append(found)
                if fits:
                    outputs.append(drawn)
            sums: Any = joined(*parts)
            totals = list(map(self._merge, totals, sums)) if totals else sums
            if fits:
                kept.append([np.concatenate(x, 0) for x in zip(*outputs, strict=True)])
        summaries = [self._summarize(found) for found in totals]
        if not fits:
            return summaries, None
        return summaries, [np.concatenate(x, 1) for x in zip(*kept, strict=True)]

    def _slices(
        self, rows: _Rows, number: int, outputs: list[Tensor] | None
    ) -> Iterator[Tensor]:
        """Yields one output under all draws, for one slice of rows after another."""
        per_row = self._num_draws(rows) * self.sizes.outputs
        size = max(1, _OUTPUTS_AT_A_TIME // per_row)
        if outputs is None and self._mixes_rows:
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
                self._outputs(_slice(rows.inputs, part), draws)[number]
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
        passes = self._coherent()
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
        draws = self._draw(
            np.array(rows.key, np.int32),
            np.array(first, np.int32),
            np.array(count, np.int32),
        )
        self.is_compiled = True
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
