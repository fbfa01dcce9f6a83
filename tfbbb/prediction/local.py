"""Posterior draws of pre-activations, with noise that all rows share."""

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfbbb.estimators.local import pre_activation_moments
from tfbbb.fold import merge_leading, split_leading

if TYPE_CHECKING:
    from tfbbb.layers.linear_variational import LinearVariationalLayer
    from tfbbb.prediction.engine import Engine


def local_pre_activations(
    engine: "Engine",
    layer: "LinearVariationalLayer",
    inputs: Any,
    folded: bool,
    num_integrated: int = 0,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns S draws of every row's pre-activations, [S * rows, units].

    The noise is a function of seed, layer, sample and unit and shared by the rows: each
    row's marginal distribution is exact, and does not depend on the rows beside it.

    Args:
        engine: The engine that is active.
        layer: A layer for which `local` is exact.
        inputs: [rows, ...], or [S * rows, ...] where `folded`.
        folded: Whether the samples are in the leading dimension already. Where they are
            not, mean and variance are computed once, not S times.
        num_integrated: Number of units, from the first on, that are not drawn: they
            stay at their mean.

    Returns:
        The draws, and the variance of the units that were not drawn,
        [S, rows, num_integrated].
    """
    members, samples = engine.members, engine.count // engine.members
    if members > 1:
        inputs = split_leading(inputs, members) if folded else inputs[tf.newaxis]
    moments = engine.moments_of(layer)
    mean, variance = pre_activation_moments(layer, inputs, moments)
    # [members, samples, rows, units], samples of 1 where they are not folded in yet;
    # the 1 in the noise is for the rows.
    rank = 1 if members == 1 else 2
    noise = tf.expand_dims(engine.noise_of(layer), rank)
    noise = tf.cast(noise, mean.dtype)
    if folded:
        mean, variance = (_by_sample(x, members, samples) for x in (mean, variance))
    elif members > 1:
        mean, variance = mean[:, tf.newaxis], variance[:, tf.newaxis]
    integrated = variance[..., :num_integrated]
    if num_integrated:
        noise *= tf.constant(
            [0.0] * num_integrated + [1.0] * (mean.shape[-1] - num_integrated),
            mean.dtype,
        )
        shape = tf.concat([tf.shape(noise)[:rank], tf.shape(mean)[-2:-1]], 0)
        shape = tf.concat([shape, [num_integrated]], 0)
        integrated = tf.broadcast_to(integrated, shape)
    draws = mean + tf.sqrt(variance) * noise
    if members > 1:
        draws, integrated = merge_leading(draws), merge_leading(integrated)
    return merge_leading(draws), integrated


def _by_sample(tensor: Any, members: int, samples: Any) -> tf.Tensor:
    """Returns [samples * rows, ...] as [samples, rows, ...], member by member."""
    if members == 1:
        return split_leading(tensor, samples)
    units = tf.shape(tensor)[2:]
    return tf.ensure_shape(
        tf.reshape(tensor, tf.concat([[members, samples, -1], units], 0)),
        [members, None, None, *tensor.shape[2:]],
    )
