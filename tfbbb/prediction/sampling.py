"""Predictions from draws: run block by block, kept or computed again."""

import functools
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from keras import tree

from tfbbb.prediction.blocks import block_sizes
from tfbbb.prediction.computation import Computation, Memory
from tfbbb.prediction.draws import Tensors
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.summary import merged

# The draws of predictions, live and exported, and those that tell how many it takes.
MAIN, PILOT = 0, 1
# 32 MB of float64, in which densities are computed.
_OUTPUTS_AT_A_TIME = 1 << 22


class Sampling:
    """S draws of the outputs for some rows, under the values that the variables have.

    Args:
        computation: Of the model.
        inputs: Tensors whose leading dimension is the number of rows.
        num_samples: The least number S of draws; whole rounds are drawn.
        seed: Seed of the draws.
        max_floats: What may be held in memory at a time.
        memory: The values of the variables; those that they have now by default.
        stream: Which stream of the seed's draws it takes.

    Attributes:
        num_samples: Number S of draws.
    """

    def __init__(
        self,
        computation: Computation,
        inputs: Any,
        num_samples: int,
        seed: int,
        max_floats: int,
        memory: Memory | None = None,
        stream: int = MAIN,
    ):
        self._computation = computation
        self._program = program = computation.program
        self._inputs = inputs
        self._seed = seed
        self._stream = stream
        self._max_floats = max_floats
        self._memory = memory or computation.memory()
        self._num_rows = int(tree.flatten(inputs)[0].shape[0])
        members = program.structure.members
        self._rounds = program.rounds(num_samples)
        self.num_samples = 2 * members * self._rounds
        self._block = block_sizes(
            program.structure,
            program.plan,
            program.num_outputs,
            self._num_rows,
            self._rounds,
            max_floats,
        )

    def results(self) -> list[Predictive]:
        """Returns the predictive distribution of each row, for each output."""
        summaries, outputs = self._summaries()
        state = self._computation.state(self._memory)
        return [
            Predictive(
                likelihood,
                state,
                found,
                functools.partial(self._slices, number, outputs),
                self.num_samples,
                self._seed,
                functools.partial(self._functions, number),
                operations=self._program.operations,
            )
            for number, (likelihood, found) in enumerate(
                zip(self._program.likelihoods, summaries, strict=True)
            )
        ]

    def _summaries(self) -> tuple[list[Any], list[Any] | None]:
        """Returns the summaries of each output, and the outputs if they may be kept."""
        if self._block == (self._num_rows, self._rounds):
            arguments = self._arguments(slice(None), 0, self._rounds)
            return self._computation.summaries(*arguments)
        per_row = self.num_samples * self._program.num_outputs
        kept: list[list[Any]] | None = []
        if self._num_rows * per_row > self._max_floats:
            kept = None
        totals: Any = None
        # Rounds in the outer loop: what is drawn serves all rows.
        for first, count in self._blocks_of_rounds():
            parts, outputs = [], []
            for rows in self._blocks_of_rows(self._block[0]):
                found, drawn = self._computation.sums(
                    *self._arguments(rows, first, count)
                )
                parts.append(found)
                if kept is not None:
                    outputs.append(drawn)
            block = [_joined(list(x)) for x in zip(*parts, strict=True)]
            if kept is not None:
                kept.append([tf.concat(x, 0) for x in zip(*outputs, strict=True)])
            totals = (
                block
                if totals is None
                else [merged(x, y) for x, y in zip(totals, block, strict=True)]
            )
        summaries = [self._program.summary(found) for found in totals]
        if kept is None:
            return summaries, None
        return summaries, [tf.concat(x, 1) for x in zip(*kept, strict=True)]

    def _slices(self, number: int, outputs: list[Any] | None) -> Iterator[Any]:
        """Gives one output of all draws, slice of rows by slice of rows."""
        per_row = self.num_samples * self._program.num_outputs
        for rows in self._blocks_of_rows(max(1, _OUTPUTS_AT_A_TIME // per_row)):
            if outputs is not None:
                yield outputs[number][rows]
            else:
                yield tf.concat([x[number] for x in self._outputs(rows)], axis=1)

    def _outputs(self, rows: slice) -> Iterator[list[Any]]:
        """Gives all outputs of some rows, block of rounds by block of rounds."""
        for first, count in self._blocks_of_rounds():
            parts = [
                self._computation.outputs(*self._arguments(part, first, count))
                for part in self._blocks_of_rows(self._block[0], rows)
            ]
            yield [tf.concat(x, axis=0) for x in zip(*parts, strict=True)]

    def _functions(self, number: int, n: int, seed: int) -> Any:
        """Returns n coherent draws of one output, [rows, n, ..., P].

        All rows see the same n draws of the weights, independent of each other.
        """
        program = self._program
        plan = Plan(dropout=program.plan.dropout)
        computation = Computation.of(
            program.model, program.likelihoods, plan, self._inputs
        )
        members = program.structure.members
        # Of each round one half: the other is its mirror image.
        num_samples = 2 * members * -(-n // members)
        # The same variables, and so the same values.
        memory = Memory(self._memory.posterior, self._memory.others)
        drawn = Sampling(
            computation, self._inputs, num_samples, seed, self._max_floats, memory
        )
        outputs = tf.concat([x[number] for x in drawn._outputs(slice(None))], axis=1)
        rows, _, *event = outputs.shape
        pairs = tf.reshape(outputs, [rows, -1, 2, members, *event])
        return tf.reshape(pairs[:, :, 0], [rows, -1, *event])[:, :n]

    def _arguments(self, rows: slice, first: int, count: int) -> tuple[Any, ...]:
        memory, computation = self._memory, self._computation
        inputs = self._inputs
        if rows != slice(None):
            inputs = tree.map_structure(lambda x: x[rows], inputs)
        return (
            memory.others.values,
            inputs,
            memory.moments(computation.moments),
            self._draws(first, count),
        )

    def _draws(self, first: int, count: int) -> Tensors:
        # What is drawn in one block may be kept.
        return self._memory.draws(
            self._computation.draws,
            (self._stream, self._seed),
            first,
            count,
            keep=self._block[1] == self._rounds,
        )

    def _blocks_of_rounds(self) -> Iterator[tuple[int, int]]:
        block = self._block[1]
        for first in range(0, self._rounds, block):
            yield first, min(block, self._rounds - first)

    def _blocks_of_rows(self, block: int, rows: slice = slice(None)) -> Iterator[slice]:
        start, stop, _ = rows.indices(self._num_rows)
        for first in range(start, stop, block):
            yield slice(first, min(first + block, stop))


def _joined(parts: list[Any]) -> Any:
    """Returns the sums of blocks of rows as those of all rows."""
    if len(parts) == 1:
        return parts[0]
    number = parts[0]["draws"]
    joined = {
        name: tf.concat([part[name] for part in parts], 0)
        for name in parts[0]
        if name != "draws"
    }
    return {**joined, "draws": number}
