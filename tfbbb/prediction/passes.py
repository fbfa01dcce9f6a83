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
from tfbbb.prediction.compiled import in_parts, joined
from tfbbb.prediction.gathered import SparseRows
from tfbbb.prediction.result import Predictive

# 32 MB of float64, in which densities are computed.
_OUTPUTS_AT_A_TIME = 1 << 22

# The noise and weights of some draws.
Draws = Structure


class _Rows(NamedTuple):
    """Rows to predict, and how many of them and of their draws one block holds."""

    inputs: Structure
    num_rows: int
    rounds: int
    block_rows: int
    block_rounds: int
    seed: int
    max_floats: int

    @property
    def is_one_block(self) -> bool:
        return (self.block_rows, self.block_rounds) == (self.num_rows, self.rounds)


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
    # Takes inputs and draws, and returns the outputs, [rows, S, ..., P] each.
    outputs: Callable[[Structure, Draws], list[Tensor]]
    # Takes the same, and returns the summaries of the outputs, too.
    answer: Callable[[Structure, Draws], tuple[list[Summary], list[Tensor]]]
    # Returns passes with the same weights whose draws are coherent functions: all rows
    # share the drawn weights.
    coherent: Callable[[], "Passes"]
    sizes: Sizes
    # About each output's predictive distribution.
    answers: Sequence[Answers]
    # How many rows the functions pass through the network at a time, of any number.
    rows_at_a_time: int = sys.maxsize
    # Takes inputs and returns the index of each row's group, [rows], or None.
    groups: Callable[[Structure], Any] = lambda inputs: None
    # Whether the outputs of a row depend on the rows beside it, so that all rows pass
    # through the network together, one draw after the other.
    mixes_rows: bool = False
    _kept: tuple[tuple[int, int, int] | None, Draws] = (None, None)

    def predict(
        self,
        inputs: Structure,
        num_samples: int,
        seed: int,
        max_floats: int,
        must_be_finite: bool = True,
    ) -> list[Predictive]:
        """Returns the predictive distribution of each row, for each output."""
        rows = self._rows(inputs, num_samples, seed, max_floats)
        summaries, outputs = self._summarize(rows)
        groups = self.groups(inputs)
        return [
            Predictive(
                answers,
                functools.partial(self._slices, rows, number, outputs),
                self._num_draws(rows),
                seed,
                functools.partial(self._functions, rows, number),
                found,
                groups,
                must_be_finite=must_be_finite,
            )
            for number, (answers, found) in enumerate(
                zip(self.answers, summaries, strict=True)
            )
        ]

    def _rows(
        self, inputs: Structure, num_samples: int, seed: int, max_floats: int
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
        return _Rows(inputs, num_rows, rounds, *block, seed, max_floats)

    def _num_draws(self, rows: _Rows) -> int:
        return 2 * self.sizes.members * rows.rounds

    def _summarize(self, rows: _Rows) -> tuple[list[Summary], list[Tensor] | None]:
        """Returns the summary of each output, and the outputs if they fit in memory."""
        if rows.is_one_block:
            return self.answer(rows.inputs, self._draws(rows, 0, rows.rounds))
        most = max(1, rows.max_floats // self._numbers_per_row(rows))
        if self.mixes_rows:
            most = rows.num_rows
        found: list[Any] = []
        outputs: list[Tensor] = []
        for part in _row_blocks(rows, most):
            outputs = self._outputs_of(rows, part)
            pairs = zip(self.answers, outputs, strict=True)
            size = self._rows_at_a_time(rows)
            found.append([in_parts(each.moments, x, size) for each, x in pairs])
        summaries: Any = joined(*found)
        return summaries, outputs if most >= rows.num_rows else None

    def _slices(
        self, rows: _Rows, number: int, outputs: list[Tensor] | None
    ) -> Iterator[Tensor]:
        """Yields one output under all draws, for one slice of rows after another."""
        for part in _row_blocks(rows, self._rows_at_a_time(rows)):
            if outputs is not None:
                yield outputs[number][part]
            else:
                yield self._outputs_of(rows, part)[number]

    def _numbers_per_row(self, rows: _Rows) -> int:
        return self._num_draws(rows) * self.sizes.outputs

    def _rows_at_a_time(self, rows: _Rows) -> int:
        """Returns of how many rows answers are computed at a time."""
        return max(1, _OUTPUTS_AT_A_TIME // self._numbers_per_row(rows))

    def _outputs_of(self, rows: _Rows, chosen: slice = slice(None)) -> list[Tensor]:
        """Returns the outputs of some rows under all draws, [rows, S, ..., P] each."""
        blocks = []
        for first in range(0, rows.rounds, rows.block_rounds):
            count = min(rows.block_rounds, rows.rounds - first)
            draws = self._draws(rows, first, count)
            parts = [
                self.outputs(_slice(rows.inputs, part), draws)
                for part in _row_blocks(rows, rows.block_rows, chosen)
            ]
            blocks.append([np.concatenate(x, axis=0) for x in zip(*parts, strict=True)])
        return [np.concatenate(x, axis=1) for x in zip(*blocks, strict=True)]

    def _functions(self, rows: _Rows, number: int, n: int, seed: int) -> Tensor:
        """Returns n coherent draws of one output's mean, [rows, n, ..., k].

        All rows see the same n draws of the weights, independent of each other.
        """
        members = self.sizes.members
        weights = self.answers[number].likelihood.member_weights
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
        drawn = passes._rows(rows.inputs, num_samples, seed, rows.max_floats)
        outputs = passes._outputs_of(drawn)[number]
        num_rows, _, *event = outputs.shape
        pairs = np.reshape(outputs, [num_rows, -1, 2, members, *event])
        functions = np.reshape(pairs[:, :, 0], [num_rows, -1, *event])
        functions = functions[:, rounds * members + chosen]
        return passes.answers[number].ask("mean", functions)

    def _draws(self, rows: _Rows, first: int, count: int) -> Draws:
        """Returns the noise and the weights of some rounds."""
        asked = (rows.seed, first, count)
        kept, draws = self._kept
        if kept == asked:
            return draws
        draws = self.draw(
            np.array([0, rows.seed], np.int32),
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


def _row_blocks(rows: _Rows, size: int, chosen: slice = slice(None)) -> Iterator[slice]:
    start, stop, _ = chosen.indices(rows.num_rows)
    for first in range(start, stop, size):
        yield slice(first, min(first + size, stop))
