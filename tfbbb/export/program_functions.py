"""The functions that a SavedModel holds to run a network for many draws."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfbbb.prediction.compiled import spec_of, traced
from tfbbb.prediction.draws import Tensors
from tfbbb.prediction.program import Program
from tfbbb.prediction.summary import merged
from tfbbb.types import Tensor

_INTEGER = tf.TensorSpec([], tf.int32)
_SEED = tf.TensorSpec([2], tf.int32)


class ProgramFunctions(tf.Module):
    """The functions of a program, traced once: graphs without loops.

    Signatures that call them block by block hold no second copy of the network.

    Args:
        program: The program, of a model with one output.
        moments: What `program.moments` returned, as variables.
        features: Specs of the feature tensors, in order.
        pack: Arranges feature tensors, in order, as the model's inputs.

    Attributes:
        draw: Takes seed [2], first and number of rounds, and returns noise and weights
            as a list.
        add_up: Takes feature tensors and what `draw` returned, and returns `sums`, in
            parts that can be merged, and `outputs`, [rows, S, ..., P].
        merge: Takes `sums` of two blocks of draws and returns them as those of one.
        summarize: Takes `sums` and returns the summary.
        answer: Takes what `add_up` takes and returns the `summary` and the `outputs`.
    """

    def __init__(
        self,
        program: Program,
        moments: Tensors,
        features: Sequence[tf.TensorSpec],
        pack: Callable[[Sequence[Any]], Any],
    ):
        super().__init__()
        form: Any = None

        def draw(
            seed: Tensor, first: int | Tensor, count: int | Tensor
        ) -> list[tf.Tensor]:
            nonlocal form
            form = program.draws(seed, first, count)
            return tf.nest.map_structure(tf.identity, tf.nest.flatten(form))

        def add_up(features: list[Any], draws: list[Any]) -> dict[str, Any]:
            drawn = tf.nest.pack_sequence_as(form, draws)
            weights = tf.nest.map_structure(tf.convert_to_tensor, moments)
            (sums,), (outputs,) = program.sums(pack(features), weights, drawn)
            return {"sums": sums, "outputs": outputs}

        def answer(features: list[Any], draws: list[Any]) -> dict[str, Any]:
            found = self.add_up(features, draws)
            summary = self.summarize(found["sums"])
            return {"summary": summary, "outputs": found["outputs"]}

        self.draw = traced(draw, _SEED, _INTEGER, _INTEGER)
        drawn = spec_of(self.draw.structured_outputs)
        self.add_up = traced(add_up, features, drawn)
        sums = spec_of(self.add_up.structured_outputs["sums"])
        self.merge = traced(merged, sums, sums)
        self.summarize = traced(program.summary, sums)
        self.answer = traced(answer, features, drawn)
