"""Posterior draws of pre-activations, with noise that all rows share."""

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfbbb.estimators.local import pre_activation_moments
from tfbbb.fold import merge_leading, split_leading

if TYPE_CHECKING:
    from tfbbb.layers.linear_variational import LinearVariationalLayer
    from tfbbb.prediction.engine import Engine


def local_pre_activations(
    engine: "Engine", layer: "LinearVariationalLayer", inputs: Any, folded: bool
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
    members = engine.members
    if members > 1:
        inputs = split_leading(inputs, members) if folded else inputs[tf.newaxis]
    mean, variance = pre_activation_moments(layer, inputs)
    stddev = tf.sqrt(variance)
    rank = 1 if members == 1 else 2
    noise = engine.noise(layer, 0, tuple(mean.shape[rank:]))
    # [members, samples, 1, units]: the 1 is for the rows.
    noise = tf.cast(tf.expand_dims(noise, rank), mean.dtype)
    if folded:
        samples = engine.count // members
        mean, stddev = (_by_sample(x, members, samples) for x in (mean, stddev))
    elif members > 1:
        mean, stddev = mean[:, tf.newaxis], stddev[:, tf.newaxis]
    draws = mean + stddev * noise
    return merge_leading(draws if members == 1 else merge_leading(draws))


def _by_sample(tensor: Any, members: int, samples: Any) -> tf.Tensor:
    """Returns [samples * rows, ...] as [samples, rows, ...], member by member."""
    if members == 1:
        return split_leading(tensor, samples)
    units = tf.shape(tensor)[2:]
    return tf.ensure_shape(
        tf.reshape(tensor, tf.concat([[members, samples, -1], units], 0)),
        [members, None, None, *tensor.shape[2:]],
    )
