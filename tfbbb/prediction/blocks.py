"""Work done block by block, so that memory stays bounded whatever its size."""

import math
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from keras import tree

from tfbbb.layers import VariationalLayer
from tfbbb.layers.linear_variational import LinearVariationalLayer
from tfbbb.layers.sharing import calls_per_pass, graph_of, sublayers
from tfbbb.prediction.engine import is_local

# 256 MB of float32 for what one block holds at a time.
MAX_FLOATS = 1 << 26
# Inputs, moments, noise and result of a layer are alive together.
_LIVE_TENSORS = 4


def block_sizes(
    model: keras.Model,
    method: str,
    num_rows: Any,
    num_samples: Any,
    num_outputs: int,
    max_floats: int = MAX_FLOATS,
) -> tuple[Any, Any]:
    """Returns how many samples and how many rows one block may hold.

    Args:
        model: The model to be run.
        method: `"local"` or `"weight"`.
        num_rows: Number of rows, an integer tensor.
        num_samples: Number of samples S, an integer tensor.
        num_outputs: Size of the model's output, per row.
        max_floats: What one block may hold.
    """
    per_sample = sum(
        weight.size
        for layer in sublayers(model)
        if isinstance(layer, VariationalLayer)
        and not (method == "local" and is_local_when_built(model, layer))
        for weight in layer.variational_weights
    )
    per_row_and_sample = _LIVE_TENSORS * widest_output(model)
    # The outputs of all samples meet in their summary, which is in float64.
    rows = max_floats // (2 * _LIVE_TENSORS * num_outputs) // num_samples
    if per_sample:
        # Weights are drawn once per block of rows: as many rows as leave half of the
        # memory to the draws of samples.
        rows = tf.minimum(rows, max_floats // 2 // per_row_and_sample)
        rows = tf.maximum(1, tf.minimum(num_rows, rows))
        samples = max_floats // (per_sample + per_row_and_sample * rows)
        return tf.clip_by_value(samples, 1, num_samples), rows
    samples = tf.minimum(num_samples, max(1, max_floats // per_row_and_sample))
    rows = tf.minimum(rows, max_floats // per_row_and_sample // samples)
    return samples, tf.maximum(1, rows)


def map_blocks(
    compute: Callable[[Any, Any], Any], total: Any, block: Any, specs: Any
) -> Any:
    """Returns `compute(first, count)` of consecutive blocks, concatenated.

    Args:
        compute: Returns tensors whose leading dimension is `count`.
        total: Number of items, at least 1.
        block: Number of items in one block, at least 1.
        specs: `tf.TensorSpec` of each tensor that `compute` returns, in its structure.
    """
    num_blocks = -(-total // block)

    def body(index: Any, arrays: list[tf.TensorArray]) -> Any:
        first = index * block
        results = tree.flatten(compute(first, tf.minimum(block, total - first)))
        written = [
            array.write(index, result)
            for array, result in zip(arrays, results, strict=True)
        ]
        return index + 1, written

    arrays = [
        tf.TensorArray(
            spec.dtype, size=num_blocks, infer_shape=False, element_shape=spec.shape
        )
        for spec in tree.flatten(specs)
    ]
    _, arrays = tf.while_loop(
        lambda index, _: index < num_blocks,
        body,
        (tf.constant(0), arrays),
        parallel_iterations=1,
    )
    return tree.pack_sequence_as(specs, [array.concat() for array in arrays])


def widest_output(model: keras.Model) -> int:
    """Returns the size of the largest tensor in the model, per row."""
    weights = [
        weight
        for layer in sublayers(model)
        if isinstance(layer, VariationalLayer)
        for weight in layer.variational_weights
    ]
    sizes = [1, *(sum(weight.shape) for weight in weights)]
    for layer in sublayers(model):
        if isinstance(layer, LinearVariationalLayer):
            # Within another layer it is no node of a graph.
            shape = layer.compute_output_shape(layer.get_build_config()["input_shape"])
            sizes.append(math.prod(size or 1 for size in shape[1:]))
        graph = graph_of(layer)
        if graph is not None:
            nodes = tree.flatten(list(graph._nodes_by_depth.values()))
            sizes += [
                math.prod(size or 1 for size in tensor.shape)
                for node in nodes
                for tensor in node.outputs
            ]
    return max(sizes)


def is_local_when_built(model: keras.Model, layer: VariationalLayer) -> bool:
    """Whether `local` draws pre-activations for the input that a layer is built for."""
    return isinstance(layer, LinearVariationalLayer) and is_local(
        layer, layer.input_rank, calls_per_pass(model, layer)
    )
