"""Posterior draws of pre-activations, with noise that all rows share."""

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfbbb.estimators.local import pre_activation_moments

if TYPE_CHECKING:
    from tfbbb.layers import VariationalLayer
    from tfbbb.prediction.engine import Engine


def local_pre_activations(
    engine: "Engine", layer: "VariationalLayer", inputs: Any, folded: bool
) -> tf.Tensor:
    """Returns S draws of every row's pre-activations, [S * rows, units].

    The noise is a function of seed, layer, sample and unit and shared by the rows: each
    row's marginal distribution is exact, and does not depend on the rows beside it.

    Args:
        engine: The engine that is active.
        layer: A layer for which `local` is exact.
        inputs: [rows, ...], or [S * rows, ...] where `folded`.
        folded: Whether the samples are in the leading dimension already. Where they are
            not, mean and variance are computed once, not S times.
    """
    mean, variance = pre_activation_moments(layer, inputs)
    stddev = tf.sqrt(variance)
    noise = engine.noise(layer, "pre_activations", tuple(mean.shape[1:]))
    noise = tf.cast(noise[:, tf.newaxis], mean.dtype)
    if folded:
        mean, stddev = engine.unfold(mean), engine.unfold(stddev)
    return engine.refold(mean + stddev * noise)
