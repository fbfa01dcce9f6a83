"""Posterior draws of a model's outputs within one graph, for any number of rows."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from keras import tree

from tfbbb.base.types import Structure, Tensor
from tfbbb.prediction.blocks import (
    MAX_FLOATS,
    block_sizes,
    map_blocks,
    reduce_blocks,
)
from tfbbb.prediction.compiled import to_specs, traced
from tfbbb.prediction.draws import Tensors
from tfbbb.prediction.program import Program
from tfbbb.prediction.summary import Sums, merged

_INTEGER = tf.TensorSpec([], tf.int32)
_SEED = tf.TensorSpec([2], tf.int32)


def trace_program(
    program: Program,
    moments: Tensors,
    features: Sequence[tf.TensorSpec],
    pack: Callable[[Sequence[Tensor]], Structure],
) -> tf.Module:
    """Returns a module with the functions of a program: graphs without loops.

    Signatures that call them block by block hold no second copy of the network.

    - `draw` takes seed [2], first and number of rounds, and returns noise and weights
      as a list.
    - `add_up` takes feature tensors and what `draw` returned, and returns `sums`, in
      parts that can be merged, and `outputs`, [rows, S, ..., P].
    - `merge` takes `sums` of two blocks of draws and returns them as those of one.
    - `summarize` takes `sums` and returns the summary.
    - `answer` takes what `add_up` takes and returns the `summary` and the `outputs`.
    """
    module = tf.Module()
    form: Tensors = {}

    def draw(seed: Tensor, first: int | Tensor, count: int | Tensor) -> list[tf.Tensor]:
        nonlocal form
        form = program.draws(seed, first, count)
        return tf.nest.map_structure(tf.identity, tf.nest.flatten(form))

    def add_up(features: list[Tensor], draws: list[Tensor]) -> dict[str, Any]:
        drawn = tf.nest.pack_sequence_as(form, draws)
        weights = tf.nest.map_structure(tf.convert_to_tensor, moments)
        (sums,), (outputs,) = program.sums(pack(features), weights, drawn)
        return {"sums": sums, "outputs": outputs}

    def answer(features: list[Tensor], draws: list[Tensor]) -> dict[str, Any]:
        found = module.add_up(features, draws)
        summary = module.summarize(found["sums"])
        return {"summary": summary, "outputs": found["outputs"]}

    module.draw = traced(draw, _SEED, _INTEGER, _INTEGER)
    drawn = to_specs(module.draw.structured_outputs)
    module.add_up = traced(add_up, features, drawn)
    sums = to_specs(module.add_up.structured_outputs["sums"])
    module.merge = traced(merged, sums, sums)
    module.summarize = traced(program.summary, sums)
    module.answer = traced(answer, features, drawn)
    return module


class Sampler:
    """Runs a program for many posterior samples within bounded memory.

    Everything is a function of inputs, number of samples and seed; the sizes of the
    blocks change no draw.
    """

    def __init__(
        self,
        program: Program,
        functions: tf.Module,
        max_floats: int = MAX_FLOATS,
    ):
        self.program = program
        self.functions = functions
        self._max_floats = max_floats

    def summary(
        self, inputs: Tensor, num_samples: int | Tensor, seed: Tensor
    ) -> dict[str, tf.Tensor]:
        """Returns the summary of every row: see `tfbbb.prediction.summary`.

        Whole rounds of S draws are made, by a seed, int32 [2].
        """
        rounds = self.program.sizes.num_rounds(num_samples, tf.maximum)
        rows, block = self._block_sizes(inputs, rounds)

        def compute_rows(
            first: int | Tensor, count: int | Tensor
        ) -> dict[str, tf.Tensor]:
            part = tree.map_structure(lambda x: x[first : first + count], inputs)

            def compute_rounds(first: int | Tensor, count: int | Tensor) -> Sums:
                draws = self.functions.draw(seed, first, count)
                return self.functions.add_up(part, draws)["sums"]

            found = reduce_blocks(compute_rounds, merged, rounds, block)
            return self.functions.summarize(found)

        return map_blocks(compute_rows, _num_rows(inputs), rows, self.summary_specs)

    def map_rows(
        self,
        compute: Callable[[Tensor], Structure],
        inputs: Tensor,
        num_samples: int | Tensor,
        seed: Tensor,
        specs: Structure,
    ) -> Structure:
        """Applies `compute` to the outputs, block of rows by block of rows.

        It takes outputs [rows, S, ..., P], by round, by sign, by member (of S, whole
        rounds are drawn), and returns tensors of `specs` whose leading dimension is
        `rows`.
        """
        rounds = self.program.sizes.num_rounds(num_samples, tf.maximum)
        rows, block = self._block_sizes(inputs, rounds)
        # The outputs of all rounds meet.
        sizes = self.program.sizes
        per_row = 2 * sizes.members * 2 * sizes.outputs
        rows = tf.maximum(1, tf.minimum(rows, self._max_floats // per_row // rounds))

        def compute_rows(first: int | Tensor, count: int | Tensor) -> Structure:
            part = tree.map_structure(lambda x: x[first : first + count], inputs)
            return compute(self._outputs(part, rounds, block, seed))

        return map_blocks(compute_rows, _num_rows(inputs), rows, specs)

    @property
    def summary_specs(self) -> dict[str, tf.TensorSpec]:
        """The `tf.TensorSpec` of every tensor of a summary."""
        found = self.functions.summarize.structured_outputs
        return {
            name: tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype)
            for name, tensor in found.items()
        }

    def _outputs(
        self, inputs: Tensor, rounds: Tensor, block: Tensor, seed: Tensor
    ) -> tf.Tensor:
        """Returns the outputs for some rows, [rows, S, ..., P], round by round."""

        def compute_rounds(first: int | Tensor, count: int | Tensor) -> tf.Tensor:
            draws = self.functions.draw(seed, first, count)
            outputs = self.functions.add_up(inputs, draws)["outputs"]
            return tf.transpose(outputs, axes)

        shape = self.program.event_shapes[0]
        axes = [1, 0, *range(2, 2 + len(shape))]
        spec = self.program.outputs_spec
        return tf.transpose(map_blocks(compute_rounds, rounds, block, spec), axes)

    def _block_sizes(self, inputs: Tensor, rounds: Tensor) -> tuple[Tensor, Tensor]:
        return block_sizes(
            self.program.sizes,
            _num_rows(inputs),
            rounds,
            self._max_floats,
            least=tf.minimum,
            greatest=tf.maximum,
        )


def _num_rows(inputs: Structure) -> tf.Tensor:
    return tf.shape(tree.flatten(inputs)[0])[0]
