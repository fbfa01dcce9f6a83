"""Posterior draws of a model's outputs as a pure TensorFlow function."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from keras import tree

from tfbbb.layers.sharing import graph_of, sublayers
from tfbbb.likelihoods import Likelihood
from tfbbb.prediction.blocks import MAX_FLOATS, block_sizes, map_blocks
from tfbbb.prediction.engine import Engine, num_members


class Sampler:
    """Runs a model for many posterior samples within bounded memory.

    Everything is a function of inputs, number of samples and seed; nothing depends on
    how the work is cut into blocks.

    Args:
        model: A built Keras model with one output tensor.
        likelihood: What takes the outputs, and may know something of each member.
        method: `"local"` or `"weight"`.
        inputs: Example inputs or their specs, from which shapes are taken.
        max_floats: What one block may hold.

    Raises:
        ValueError: Where the model has several outputs.
    """

    def __init__(
        self,
        model: keras.Model,
        likelihood: Likelihood,
        method: str,
        inputs: Any,
        max_floats: int = MAX_FLOATS,
    ):
        self.model = model
        self.likelihood = likelihood
        self.method = method
        self.max_floats = max_floats
        # What the cached computation stands on must not be freed and its id reused.
        self.layers = sublayers(model)
        self._members = num_members(model)
        self.input_specs = tree.map_structure(_rows_unknown, inputs)
        symbolic = tree.map_structure(
            lambda spec: keras.KerasTensor(spec.shape, spec.dtype.name),
            self.input_specs,
        )
        graph = graph_of(model)
        outputs = tree.flatten(
            model.compute_output_spec(symbolic) if graph is None else graph.outputs
        )
        if len(outputs) != 1:
            raise ValueError(
                "The posterior predictive needs a model with one output tensor. "
                f"Received: {len(outputs)} outputs"
            )
        example = tf.zeros([1, *(size or 1 for size in outputs[0].shape[1:])])
        last = likelihood.of_members(example, 0).shape[-1:]
        self.event_shape = tf.TensorShape([*outputs[0].shape[1:-1], *last])
        self.output_dtype = tf.as_dtype(outputs[0].dtype)

    def map_rows(
        self,
        compute: Callable[[Any, Any], Any],
        inputs: Any,
        num_samples: Any,
        seed: Any,
        specs: Any,
    ) -> Any:
        """Returns what `compute` makes of the outputs, block of rows by block of rows.

        Args:
            compute: Takes outputs [rows, S, ..., P] and the index of the first row, and
                returns tensors whose leading dimension is `rows`.
            inputs: Tensors whose leading dimension is the number of rows.
            num_samples: Number of posterior samples S.
            seed: int32 tensor of shape [2].
            specs: `tf.TensorSpec` of each result of `compute`, in its structure.
        """
        num_rows = tf.shape(tree.flatten(inputs)[0])[0]
        samples, rows = block_sizes(
            self.model,
            self.method,
            num_rows,
            num_samples,
            self.event_shape.num_elements() or 1,
            self.max_floats,
        )

        def block(first: Any, count: Any) -> Any:
            part = tree.map_structure(lambda x: x[first : first + count], inputs)
            return compute(self._outputs(part, num_samples, samples, seed), first)

        return map_blocks(block, num_rows, rows, specs)

    def _outputs(self, inputs: Any, num_samples: Any, block: Any, seed: Any) -> Any:
        """Returns the outputs for one block of rows, [rows, S, ..., P]."""

        def draw(first: Any, count: Any) -> tf.Tensor:
            outputs = Engine(self.model, self.method, seed, first, count).run(inputs)
            member = tf.range(first, first + count) % self._members
            ones = [1] * (len(outputs.shape) - 2)
            return self.likelihood.of_members(outputs, tf.reshape(member, [-1, *ones]))

        spec = tf.TensorSpec([None, None, *self.event_shape], self.output_dtype)
        # Whole rounds of the members; what is over in the last one is left aside.
        whole, block = self._rounded_up(num_samples), self._rounded_up(block)
        drawn = map_blocks(draw, whole, block, spec)[:num_samples]
        axes = [1, 0, *range(2, 2 + len(self.event_shape))]
        return tf.transpose(drawn, axes)

    def _rounded_up(self, number: Any) -> Any:
        return -(-number // self._members) * self._members


def _rows_unknown(tensor: Any) -> tf.TensorSpec:
    return tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype)
