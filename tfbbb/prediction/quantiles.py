"""The quantiles of a mixture of likelihoods.

`outputs` is [rows, S, ..., P] throughout: the network's outputs for each row and draw.
Everything is computed in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tfbbb.base import array_ops as ops
from tfbbb.base.batch_layout import dimensions
from tfbbb.base.threads import map_in_threads, num_threads
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.likelihoods.inversion import (
    Function,
    bracket_of_counts,
    first_search,
    inverted,
    least_integer,
    searched,
)
from tfbbb.prediction.draw_weights import average_over_draws

# 4 MB of float64: components of a mixture times levels, in one block of the rows of an
# array. Threads share the blocks, and their caches hold them.
_MOST_COMPONENTS = 1 << 19
# Steps of the search for the quantiles of arrays.
_MOST_STEPS = 200
# Number of terms that the distribution function of counts adds up at a time.
_TERMS_OF_COUNTS = 11


def quantiles(likelihood: Likelihood, levels: ArrayLike, outputs: Tensor) -> Tensor:
    """Inverts the mixture's distribution function, target by target: [rows, Q, ..., k].

    Of integers it is the least whose distribution function reaches the level, found by
    bisection. Of real targets, a mixture's quantile lies between the least and the
    greatest of its components' quantiles, where Newton's method and bisection find it.
    Their levels are [Q], or [rows, Q, ..., k], of each row and target its own.
    """
    levels, outputs = ops.cast(levels, "float64"), likelihood.as_array(outputs)
    shape = dimensions(outputs, 0)
    by_row = len(levels.shape) > 1
    if by_row:
        levels = ops.broadcast_to(levels, [shape[0], *dimensions(levels, 0)[1:]])
    invert = _invert_steps if likelihood.discrete else _invert
    if ops.is_tensor(outputs):
        return invert(likelihood, levels, outputs)

    def of_rows(part: slice) -> Tensor:
        return invert(likelihood, levels[part] if by_row else levels, outputs[part])

    per_row = math.prod(shape[1:]) * levels.shape[1 if by_row else 0]
    if likelihood.discrete:
        per_row *= _TERMS_OF_COUNTS
    size = _rows_of_a_thread(shape[0], max(1, _MOST_COMPONENTS // max(per_row, 1)))
    parts = [slice(i, i + size) for i in range(0, shape[0], size)]
    return np.concatenate(map_in_threads(of_rows, parts or [slice(0, 0)]))


def _rows_of_a_thread(num_rows: int, most: int) -> int:
    """Returns how many rows, at most so many, keep all threads busy to the end."""
    if num_rows <= most // 4:
        # A thread takes longer to start.
        return max(1, num_rows)
    threads = num_threads()
    rounds = -(-num_rows // (most * threads))
    return -(-num_rows // (rounds * threads))


def _over_axes(levels: Tensor, axes: int) -> Tensor:
    """Returns levels [Q] as [Q, 1, ..., 1], over so many axes of places and targets."""
    return ops.reshape(levels, [-1, *[1] * axes])


def _invert_steps(likelihood: Likelihood, levels: Tensor, outputs: Tensor) -> Tensor:
    outputs = ops.cast(outputs, "float64")[:, ops.newaxis]
    wanted = levels
    if len(levels.shape) == 1:
        wanted = _over_axes(levels, len(outputs.shape) - 3)

    def reaches(values: Tensor) -> Tensor:
        per_sample = likelihood.cdf(values[:, :, ops.newaxis], outputs)
        return average_over_draws(likelihood, per_sample, axis=2) >= wanted

    mean, variance = _moments(likelihood, outputs)
    return least_integer(reaches, *bracket_of_counts(wanted, mean, variance))


def _invert(likelihood: Likelihood, levels: Tensor, outputs: Tensor) -> Tensor:
    outputs = ops.cast(outputs, "float64")[:, ops.newaxis]
    if len(levels.shape) == 1:
        levels = _over_axes(levels, len(outputs.shape) - 3)[ops.newaxis]

    def average(compute: Callable[..., Tensor], outputs: Tensor) -> Function:
        def averaged(values: Tensor) -> Tensor:
            of_draws = compute(values[:, :, ops.newaxis], outputs)
            average = average_over_draws(likelihood, of_draws, axis=2)
            return average if ops.is_tensor(outputs) else np.asarray(average)

        return averaged

    def functions(outputs: Tensor) -> tuple[Function, Function]:
        return average(likelihood.cdf, outputs), average(likelihood.prob, outputs)

    bracket = _bracket(likelihood, levels, outputs)
    for value in likelihood.masses:
        bracket = _beside_mass(value, levels, functions(outputs), *bracket)
    if ops.is_tensor(outputs):
        return inverted(*functions(outputs), levels, *bracket)
    # A likelihood of another package may compute tensors.
    bracket = tuple(map(np.asarray, bracket))
    # Most rows have their quantiles long before the last one has.
    search = first_search(*bracket)
    levels = np.broadcast_to(levels, search[0].shape)
    found, rows = np.empty_like(search[0]), np.arange(len(outputs))
    for _ in range(_MOST_STEPS):
        search = searched(*functions(outputs[rows]), levels[rows], search, 1)
        values, *_, moving, _ = search
        found[rows] = values
        left = moving.reshape(len(rows), -1).any(axis=1)
        rows, search = rows[left], tuple(part[left] for part in search)
        if not len(rows):
            break
    return found


def _bracket(
    likelihood: Likelihood, levels: Tensor, outputs: Tensor
) -> tuple[Tensor, ...]:
    """Returns bounds of the mixture's quantiles, [rows, Q, ..., k] each.

    If the quantiles of components take long, the bounds are those of any distribution
    with this mean and variance (Cantelli 1928), and the quantiles of the normal
    distribution with these are a start.
    """
    if not likelihood.slow_quantiles:
        per_component = likelihood.quantile(levels[:, :, ops.newaxis], outputs)
        return (
            ops.reduce_min(per_component, axis=2),
            ops.reduce_max(per_component, axis=2),
        )
    mean, variance = _moments(likelihood, outputs)
    stddev = ops.sqrt(variance)
    odds = levels / (1.0 - levels)
    # Rounding must not move a bound beyond the quantile.
    below, above = stddev / ops.sqrt(odds), stddev * ops.sqrt(odds)
    start = mean + stddev * ops.ndtri(levels)
    return mean - 1.001 * below, mean + 1.001 * above, start


def _beside_mass(
    value: float,
    levels: Tensor,
    functions: tuple[Function, Function],
    low: Tensor,
    high: Tensor,
    *start: Tensor,
) -> tuple[Tensor, ...]:
    """Narrows a bracket by a value that has a probability of its own.

    It is the value itself where the distribution function jumps over the level.
    """
    at_value = value + ops.zeros_like(low)
    up_to, mass = (compute(at_value) for compute in functions)
    low = ops.where(levels > up_to - mass, ops.maximum(low, value), low)
    return low, ops.where(levels <= up_to, ops.minimum(high, value), high), *start


def _moments(likelihood: Likelihood, outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Returns mean and variance of the mixture, for outputs [rows, 1, S, ..., P]."""
    means, variances = likelihood.mean(outputs), likelihood.variance(outputs)
    mean = average_over_draws(likelihood, means, axis=2)
    squares = variances + ops.square(means - mean[:, :, ops.newaxis])
    return mean, average_over_draws(likelihood, squares, axis=2)
