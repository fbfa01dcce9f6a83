"""Posterior draws of weights, one coherent function per sample."""

from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from tfbbb.layers import VariationalLayer
    from tfbbb.layers.variational_weight import VariationalWeight
    from tfbbb.prediction.engine import Engine


def weight_pre_activations(
    engine: "Engine", layer: "VariationalLayer", inputs: Any, folded: bool
) -> tf.Tensor:
    """Returns every row's pre-activations for S draws of the weights.

    All rows, and all calls of a shared layer, see the same S weights.

    Args:
        engine: The engine that is active.
        layer: Any variational layer.
        inputs: [rows, ...], or [S * rows, ...] where `folded`.
        folded: Whether the samples are in the leading dimension already.

    Returns:
        [S * rows, ..., units].
    """
    dtype = layer.compute_dtype
    inputs = tf.cast(inputs, dtype)
    inputs = engine.unfold(inputs) if folded else inputs[tf.newaxis]

    def draws(weight: "VariationalWeight") -> tf.Tensor:
        noise = engine.noise(layer, weight.name, weight.shape)
        return tf.cast(weight.mean + weight.perturb(noise), dtype)

    outputs = layer.linear(inputs, draws(layer.kernel))
    if layer.bias is not None:
        bias = draws(layer.bias)
        ones = [1] * (len(outputs.shape) - 2)
        outputs += tf.reshape(bias, [tf.shape(bias)[0], *ones, *layer.bias.shape])
    return engine.refold(outputs)
