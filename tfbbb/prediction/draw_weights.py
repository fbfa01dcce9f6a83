"""The weights of the draws in a mixture whose members have unequal weights.

Draws are by round, by sign, by member: draw s belongs to member `s mod K`. Every member
has the same number of draws, so a draw weighs as much as its member, divided by that
number, and the mixture is exact for any weights.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from tfbbb.base.types import Tensor

if TYPE_CHECKING:
    from tfbbb.bayes.likelihoods import Likelihood


def average_over_draws(
    likelihood: "Likelihood", values: Tensor, axis: int
) -> tf.Tensor:
    """Returns the average of values over an axis of draws, by the draws' weights."""
    weights = likelihood.member_weights
    if weights is None:
        return tf.reduce_mean(values, axis=axis)
    members = len(weights)
    shape = tf.shape(values)
    by_member = tf.concat([shape[:axis], [-1, members], shape[axis + 1 :]], 0)
    means = tf.reduce_mean(tf.reshape(values, by_member), axis=axis)
    means.set_shape([*values.shape[:axis], members, *values.shape[axis + 1 :]])
    return weighted_sum(means, weights, axis)


def log_average_over_draws(likelihood: "Likelihood", logs: Tensor) -> tf.Tensor:
    """Returns the log of the average of `exp(logs)`, [rows, S, ...], over the draws."""
    weights = likelihood.member_weights
    num_draws = tf.shape(logs)[1]
    if weights is not None:
        of_draws = tf.tile(
            tf.constant(np.log(weights), logs.dtype), [num_draws // len(weights)]
        )
        num_draws = num_draws // len(weights)
        ones = [1] * (len(logs.shape) - 2)
        logs += tf.reshape(of_draws, [1, -1, *ones])
    return tf.reduce_logsumexp(logs, axis=1) - tf.math.log(
        tf.cast(num_draws, logs.dtype)
    )


def weighted_sum(values: Tensor, weights: Sequence[float], axis: int) -> tf.Tensor:
    """Returns the sum over an axis of K entries of values times weights, [K]."""
    ones = [1] * (len(values.shape) - axis - 1)
    shaped = tf.reshape(tf.constant(weights, values.dtype), [-1, *ones])
    return tf.reduce_sum(values * shaped, axis=axis)
