"""Scores of predictions by their targets, for which Keras is not needed."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike
from tfbbb.prediction.result import Predictive

if TYPE_CHECKING:
    from tfbbb.prediction.recalibration.cross_fitted import CrossFitted

# Percentiles, and beyond them a level at every quarter of a standard deviation to 4.5.
_TAIL = [0.5 * math.erfc(t / math.sqrt(2.0)) for t in np.arange(4.5, 2.4, -0.25)]
_LEVELS = [*_TAIL, *np.arange(1, 100) / 100, *(1.0 - p for p in reversed(_TAIL))]
_RARE = 1e-6
_MAX_TERMS = 256


def is_of_classes(prediction: object) -> bool:
    """Returns whether a prediction is of classes rather than numbers."""
    return hasattr(prediction, "probabilities")


def is_discrete(prediction: object) -> bool:
    """Returns whether the targets are counts or classes, whose F is a step function."""
    return is_of_classes(prediction) or bool(getattr(prediction, "discrete", False))


def cdf_step(
    prediction: "Predictive | CrossFitted", targets: ArrayLike
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns `P(Y < y)` and `P(Y <= y)`, [rows, ..., k] each.

    Args:
        prediction: A prediction of ordered targets.
        targets: Targets from `tfbbb.metrics.targets.checked_targets`.
    """
    values = ordered_values(prediction, targets)
    up_to = tf.cast(prediction.cdf(values), tf.float64)
    if not is_discrete(prediction):
        return up_to, up_to
    # Counts and indices of classes start at 0.
    previous = values - tf.cast(values >= 1.0, tf.float64)
    below = tf.cast(prediction.cdf(previous), tf.float64)
    return tf.where(values >= 1.0, below, 0.0), up_to


def in_intervals(
    prediction: "Predictive | CrossFitted",
    targets: ArrayLike,
    levels: Sequence[float],
) -> tf.Tensor:
    """Returns whether central intervals hold the targets, [rows, Q, ..., k].

    A target lies between two quantiles if F(y) lies between their levels, so there is
    no search for quantiles. Conformal intervals have bounds of their own.

    Args:
        prediction: A prediction of ordered targets.
        targets: Targets from `tfbbb.metrics.targets.checked_targets`.
        levels: Probabilities of the intervals, [Q].
    """
    if not getattr(prediction, "central_intervals", True):
        lower, upper = prediction.interval(levels)
        values = ordered_values(prediction, targets)[:, np.newaxis]
        return (lower <= values) & (values <= upper)
    below, up_to = cdf_step(prediction, targets)
    held = [
        (up_to >= 0.5 - level / 2.0) & (below <= 0.5 + level / 2.0) for level in levels
    ]
    return tf.stack(held, axis=1)


def ordered_values(
    prediction: "Predictive | CrossFitted", targets: ArrayLike
) -> ArrayLike:
    """Returns targets as arguments of `cdf`, [rows, ..., k]."""
    if len(targets.shape) == len(prediction.mean.shape):
        return targets
    # Indices of ordered classes, [rows, ...].
    if tf.is_tensor(targets):
        return tf.cast(targets, tf.float64)[..., tf.newaxis]
    return targets[..., np.newaxis].astype(np.float64)


def brier_of_targets(prediction: Predictive, targets: ArrayLike) -> tf.Tensor:
    """Returns the Brier score of each target; see `tfbbb.metrics.brier_score`.

    Args:
        prediction: A prediction of classes.
        targets: Targets from `tfbbb.metrics.targets.checked_targets`.
    """
    probabilities = tf.cast(prediction.probabilities, tf.float64)
    num_classes = probabilities.shape[-1]
    one_hot = tf.one_hot(targets, num_classes, dtype=tf.float64)
    score = tf.reduce_sum(tf.square(probabilities - one_hot), axis=-1)
    # The two probabilities of a row have the same error.
    return 0.5 * score if num_classes == 2 else score


def crps_of_targets(prediction: Predictive, targets: ArrayLike) -> tf.Tensor:
    """Returns the CRPS of each target, [rows, ..., k]; see `tfbbb.metrics.crps`.

    Args:
        prediction: A prediction of ordered targets.
        targets: Targets from `tfbbb.metrics.targets.checked_targets`.
    """
    values = ordered_values(prediction, targets)
    if is_discrete(prediction):
        return _score_integers(prediction, values)
    return _score_numbers(prediction, values)


def _score_numbers(prediction: Predictive, values: ArrayLike) -> tf.Tensor:
    below = tf.cast(prediction.cdf(values), tf.float64)
    nodes = tf.cast(prediction.quantile(_LEVELS), tf.float64)
    # Move the levels to the last axis: [rows, ..., k, Q].
    nodes = tf.transpose(nodes, [0, *range(2, len(nodes.shape)), 1])
    target = tf.convert_to_tensor(values)[..., tf.newaxis]
    scores = tf.math.ndtri(tf.constant(_LEVELS, tf.float64))
    split = tf.clip_by_value(
        tf.math.ndtri(below)[..., tf.newaxis], scores[0], scores[-1]
    )
    left = _integral(tf.minimum(nodes, target), tf.minimum(scores, split))
    # The integral of (1 - F)^2 above the target: mirroring both axes turns F to 1 - F.
    right = _integral(-tf.maximum(nodes, target), -tf.maximum(scores, split))
    # F is 0 or 1 between the outermost quantiles and a target beyond them.
    outside = tf.maximum(nodes[..., 0] - values, 0.0) + tf.maximum(
        values - nodes[..., -1], 0.0
    )
    return left + right + outside


def _integral(nodes: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    """Returns the size of `integral F(z)^2 dz` over the nodes z, [..., Q].

    The nodes are quantiles, in order, and the scores are `Phi^-1(F)` at the nodes.
    """
    width = tf.abs(nodes[..., 1:] - nodes[..., :-1])
    first, last = scores[..., :-1], scores[..., 1:]
    middle = tf.square(_phi(0.5 * (first + last)))
    # The difference of two almost equal integrals would lose its digits.
    apart = tf.abs(last - first) > 1e-4
    mean = (_antiderivative(last) - _antiderivative(first)) / tf.where(
        apart, last - first, 1.0
    )
    return tf.reduce_sum(width * tf.where(apart, mean, middle), axis=-1)


def _antiderivative(t: tf.Tensor) -> tf.Tensor:
    """Returns `integral Phi(s)^2 ds` from minus infinity to t."""
    density = tf.exp(-0.5 * tf.square(t)) / math.sqrt(2.0 * math.pi)
    return (
        t * tf.square(_phi(t))
        + 2.0 * density * _phi(t)
        - _phi(math.sqrt(2.0) * t) / math.sqrt(math.pi)
    )


def _phi(t: tf.Tensor) -> tf.Tensor:
    return 0.5 * tf.math.erfc(-t / math.sqrt(2.0))


def _score_integers(prediction: Predictive, values: ArrayLike) -> tf.Tensor:
    bounds = tf.cast(prediction.quantile([_RARE, 1.0 - _RARE]), tf.float64)
    first, end = bounds[:, 0], bounds[:, 1]
    target = tf.convert_to_tensor(values)
    step = tf.maximum(tf.math.ceil((end - first) / _MAX_TERMS), 1.0)
    num_terms = tf.reduce_max(tf.math.ceil((end - first) / step))

    def add(index: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        start = tf.minimum(first + index * step, end)
        size = tf.minimum(step, end - start)
        middle = tf.math.floor(start + tf.maximum(size - 1.0, 0.0) / 2.0)
        below = tf.cast(prediction.cdf(middle), tf.float64)
        # The number of integers of the block that are at least the target.
        above = tf.clip_by_value(start + size - target, 0.0, size)
        block = (size - above) * tf.square(below) + above * tf.square(1.0 - below)
        return index + 1.0, total + block

    # Beyond these bounds F is 0 or 1 up to `_RARE`.
    outside = tf.maximum(first - target, 0.0) + tf.maximum(target - end, 0.0)
    _, total = tf.while_loop(
        lambda index, _: index < num_terms,
        add,
        (tf.constant(0.0, tf.float64), outside),
    )
    return total
