"""The weights of the draws in a mixture whose members have unequal weights.

Draws are by round, by sign, by member: draw s belongs to member `s mod K`. Every member
has the same number of draws, so a draw weighs as much as its member, divided by that
number, and the mixture is exact for any weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tfbbb.base import array_ops as ops
from tfbbb.base.batch_layout import dimensions
from tfbbb.base.types import Tensor

if TYPE_CHECKING:
    from tfbbb.bayes.likelihoods import Likelihood


def average_over_draws(likelihood: Likelihood, values: Tensor, axis: int) -> Tensor:
    """Returns the average of values over an axis of draws, by the draws' weights."""
    weights = likelihood.member_weights
    if weights is None:
        return ops.reduce_mean(values, axis=axis)
    members = len(weights)
    sizes = dimensions(values, 0)
    by_member = [*sizes[:axis], -1, members, *sizes[axis + 1 :]]
    means = ops.reduce_mean(ops.reshape(values, by_member), axis=axis)
    return weighted_sum(means, weights, axis)


def log_average_over_draws(likelihood: Likelihood, logs: Tensor) -> Tensor:
    """Returns the log of the average of `exp(logs)`, [rows, S, ...], over the draws."""
    weights = likelihood.member_weights
    num_draws = ops.shape(logs)[1]
    if weights is not None:
        num_draws = num_draws // len(weights)
        of_draws = ops.tile(ops.constant(np.log(weights), logs.dtype), [num_draws])
        logs = logs + ops.reshape(of_draws, [1, -1, *[1] * (len(logs.shape) - 2)])
    return ops.reduce_logsumexp(logs, axis=1) - ops.log(ops.cast(num_draws, logs.dtype))


def weighted_sum(values: Tensor, weights: Sequence[float], axis: int) -> Tensor:
    """Returns the sum over an axis of K entries of values times weights, [K]."""
    ones = [1] * (len(values.shape) - axis - 1)
    shaped = ops.reshape(ops.constant(weights, values.dtype), [-1, *ones])
    return ops.reduce_sum(values * shaped, axis=axis)
