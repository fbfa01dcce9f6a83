"""Posterior draws of weights, one coherent function per sample."""

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfbbb.fold import merge_leading

if TYPE_CHECKING:
    from tfbbb.layers.linear_variational import LinearVariationalLayer
    from tfbbb.prediction.engine import Engine


def weight_pre_activations(
    engine: "Engine", layer: "LinearVariationalLayer", inputs: Any, folded: bool
) -> tf.Tensor:
    """Returns every row's pre-activations for S draws of the weights.

    All rows, and all calls of a shared layer, see the same S weights.

    Args:
        engine: The engine that is active.
        layer: Any layer that is linear in a kernel.
        inputs: [rows, ...], or [S * rows, ...] where `folded`.
        folded: Whether the samples are in the leading dimension already.

    Returns:
        [S * rows, ..., units].
    """
    inputs = layer.cast_inputs(inputs)
    inputs = engine.unfold(inputs) if folded else inputs[tf.newaxis]
    draws = engine.drawn_weights(layer)
    outputs = layer.linear(inputs, draws["kernel"])
    if layer.bias is not None:
        outputs += layer.broadcast_bias(draws["bias"], len(outputs.shape))
    return merge_leading(outputs)
