"""Posterior draws of a model's outputs within one graph, for any number of rows."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from keras import tree

from tfbbb.export.program_functions import ProgramFunctions
from tfbbb.prediction.blocks import (
    MAX_FLOATS,
    block_sizes,
    map_blocks,
    reduce_blocks,
)
from tfbbb.prediction.program import Program
from tfbbb.prediction.summary import merged
from tfbbb.types import Tensor


class Sampler:
    """Runs a program for many posterior samples within bounded memory.

    Everything is a function of inputs, number of samples and seed; how the work is cut
    into blocks changes no draw.

    Args:
        program: The program, of a model with one output.
        functions: Its functions.
        max_floats: How many numbers may be in memory at a time.
    """

    def __init__(
        self,
        program: Program,
        functions: ProgramFunctions,
        max_floats: int = MAX_FLOATS,
    ):
        self.program = program
        self.functions = functions
        self._max_floats = max_floats

    def summary(
        self, inputs: Tensor, num_samples: Any, seed: Tensor
    ) -> dict[str, tf.Tensor]:
        """Returns the summary of every row, as `tfbbb.prediction.summary` has it.

        Args:
            inputs: Tensors whose leading dimension is the number of rows.
            num_samples: Number S of posterior samples, of which whole rounds are drawn.
            seed: int32 tensor of shape [2].
        """
        rounds = self._rounds(num_samples)
        rows, block = self._block_sizes(inputs, rounds)

        def of_rows(first: int | Tensor, count: int | Tensor) -> dict[str, tf.Tensor]:
            part = tree.map_structure(lambda x: x[first : first + count], inputs)

            def of_rounds(first: int | Tensor, count: int | Tensor) -> Any:
                draws = self.functions.draw(seed, first, count)
                return self.functions.add_up(part, draws)["sums"]

            found = reduce_blocks(of_rounds, merged, rounds, block)
            return self.functions.summarize(found)

        return map_blocks(of_rows, _num_rows(inputs), rows, self.summary_specs)

    def map_rows(
        self,
        compute: Callable[[Any, Any], Any],
        inputs: Tensor,
        num_samples: Any,
        seed: Tensor,
        specs: Any,
    ) -> Any:
        """Applies `compute` to the outputs, block of rows by block of rows.

        Args:
            compute: Takes outputs [rows, S, ..., P], by round, by sign, by member (of
                S, whole rounds are drawn), and the index of the first row, and returns
                tensors whose leading dimension is `rows`.
            inputs: Tensors whose leading dimension is the number of rows.
            num_samples: Number S of posterior samples.
            seed: int32 tensor of shape [2].
            specs: `tf.TensorSpec` of each result of `compute`, in its structure.
        """
        rounds = self._rounds(num_samples)
        rows, block = self._block_sizes(inputs, rounds)
        # The outputs of all rounds meet.
        sizes = self.program.sizes
        per_row = 2 * sizes.members * 2 * sizes.outputs
        rows = tf.maximum(1, tf.minimum(rows, self._max_floats // per_row // rounds))

        def of_rows(first: int | Tensor, count: int | Tensor) -> Any:
            part = tree.map_structure(lambda x: x[first : first + count], inputs)
            return compute(self._outputs(part, rounds, block, seed), first)

        return map_blocks(of_rows, _num_rows(inputs), rows, specs)

    @property
    def summary_specs(self) -> dict[str, tf.TensorSpec]:
        """The `tf.TensorSpec` of every tensor of a summary."""
        found = self.functions.summarize.structured_outputs
        return {
            name: tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype)
            for name, tensor in found.items()
        }

    def _outputs(self, inputs: Tensor, rounds: Any, block: Any, seed: Tensor) -> Any:
        """Returns the outputs for some rows, [rows, S, ..., P], round by round."""

        def of_rounds(first: int | Tensor, count: int | Tensor) -> tf.Tensor:
            draws = self.functions.draw(seed, first, count)
            outputs = self.functions.add_up(inputs, draws)["outputs"]
            return tf.transpose(outputs, axes)

        shape = self.program.event_shapes[0]
        axes = [1, 0, *range(2, 2 + len(shape))]
        spec = self.program.outputs_spec
        return tf.transpose(map_blocks(of_rounds, rounds, block, spec), axes)

    def _rounds(self, num_samples: Any) -> Any:
        rounds = self.program.sizes.num_rounds(num_samples, tf.maximum)
        return tf.convert_to_tensor(rounds)

    def _block_sizes(self, inputs: Tensor, rounds: Any) -> tuple[Any, Any]:
        return block_sizes(
            self.program.sizes,
            _num_rows(inputs),
            rounds,
            self._max_floats,
            least=tf.minimum,
            greatest=tf.maximum,
        )


def _num_rows(inputs: Tensor) -> Any:
    return tf.shape(tree.flatten(inputs)[0])[0]
