"""The continuous ranked probability score."""

import math
from typing import Any, Literal, overload

import keras
import numpy as np
import tensorflow as tf

from tfbbb.metrics.mean_score import MeanScore, averaged
from tfbbb.metrics.pit import ordered_values
from tfbbb.metrics.targets import checked_targets, is_discrete

# Percentiles, and beyond them every quarter of a standard deviation out to 4.5.
_TAIL = [0.5 * math.erfc(t / math.sqrt(2.0)) for t in np.arange(4.5, 2.4, -0.25)]
_LEVELS = [*_TAIL, *np.arange(1, 100) / 100, *(1.0 - p for p in reversed(_TAIL))]
_RARE = 1e-6
_MOST_TERMS = 256


@overload
def crps(prediction: Any, y: Any, *, per_row: Literal[False] = False) -> float: ...


@overload
def crps(prediction: Any, y: Any, *, per_row: Literal[True]) -> np.ndarray: ...


def crps(prediction: Any, y: Any, *, per_row: bool = False) -> float | np.ndarray:
    """Computes `integral (F(z) - 1{z >= y})^2 dz`, in units of y.

    Over the predictive distribution function F of each target (Matheson and Winkler
    1976; Gneiting and Raftery 2007). It is proper, the lower the better, and for a
    prediction without spread it is the absolute error.

    Between quantiles at 117 levels, with one more at the target, `Phi^-1(F)` is taken
    as linear, by which the integral is in closed form: for a Normal it is exact to 2e-6
    standard deviations, for a mixture of normals of like widths to 5e-4 and mostly 3e-5
    of its standard deviation, and for one whose parts are far apart to 0.5 % of the
    gap. For counts it is the sum over integers `sum_z (F(z) - 1{z >= y})^2`, in blocks
    of one F where there are more than 256, and for ordered classes that is the ranked
    probability score (Epstein 1969).

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0, 2.0]])
    >>> near = tfbbb.metrics.crps(prediction, prediction.mean)
    >>> near < tfbbb.metrics.crps(prediction, prediction.mean + 1.0)
    True

    Args:
        prediction: A `tfbbb.Predictive` of numbers, counts or ordered classes.
        y: Targets in raw units, [rows, k] (or [rows] for one target).
        per_row: Whether to return the score target by target, [rows, k], and not their
            mean.

    Raises:
        ValueError: For classes without an order, or where the targets do not fit the
            prediction.
    """
    targets = checked_targets(prediction, y, "ordered", "crps")
    return averaged(_scores(prediction, targets), per_row)


@keras.saving.register_keras_serializable(package="tfbbb.metrics")
class CRPS(MeanScore):
    """`crps` as a Keras metric.

    With several draws in a step it inverts a distribution function at every step,
    which takes longer than a step of a small network.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> model.compile(metrics=[tfbbb.metrics.CRPS()])
    """

    scored = "ordered"

    default_name = "crps"

    def score(self, prediction: Any, targets: tf.Tensor) -> tf.Tensor:
        return _scores(prediction, targets)


def _scores(prediction: Any, targets: Any) -> tf.Tensor:
    values = ordered_values(prediction, targets)
    if is_discrete(prediction):
        return _of_integers(prediction, values)
    return _of_numbers(prediction, values)


def _of_numbers(prediction: Any, values: Any) -> tf.Tensor:
    below = tf.cast(prediction.cdf(values), tf.float64)
    nodes = tf.cast(prediction.quantile(_LEVELS), tf.float64)
    # The levels behind the targets: [rows, ..., k, Q].
    nodes = tf.transpose(nodes, [0, *range(2, len(nodes.shape)), 1])
    target = tf.convert_to_tensor(values)[..., tf.newaxis]
    scores = tf.math.ndtri(tf.constant(_LEVELS, tf.float64))
    split = tf.clip_by_value(
        tf.math.ndtri(below)[..., tf.newaxis], scores[0], scores[-1]
    )
    left = _integral(tf.minimum(nodes, target), tf.minimum(scores, split))
    # The same from the other side: F becomes 1 - F where both axes are turned round.
    right = _integral(-tf.maximum(nodes, target), -tf.maximum(scores, split))
    # From a target beyond the outermost quantiles to these, F is 0 or 1.
    outside = tf.maximum(nodes[..., 0] - values, 0.0) + tf.maximum(
        values - nodes[..., -1], 0.0
    )
    return left + right + outside


def _integral(nodes: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    """Returns the size of `integral F(z)^2 dz` over the nodes z, [..., Q].

    Args:
        nodes: Quantiles, in order.
        scores: `Phi^-1(F)` at the nodes.
    """
    width = tf.abs(nodes[..., 1:] - nodes[..., :-1])
    first, last = scores[..., :-1], scores[..., 1:]
    middle = tf.square(_phi(0.5 * (first + last)))
    # The difference of two integrals would lose its digits where they meet.
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


def _of_integers(prediction: Any, values: Any) -> tf.Tensor:
    bounds = tf.cast(prediction.quantile([_RARE, 1.0 - _RARE]), tf.float64)
    first, end = bounds[:, 0], bounds[:, 1]
    target = tf.convert_to_tensor(values)
    step = tf.maximum(tf.math.ceil((end - first) / _MOST_TERMS), 1.0)
    num_terms = tf.reduce_max(tf.math.ceil((end - first) / step))

    def add(index: Any, total: Any) -> Any:
        start = tf.minimum(first + index * step, end)
        size = tf.minimum(step, end - start)
        middle = tf.math.floor(start + tf.maximum(size - 1.0, 0.0) / 2.0)
        below = tf.cast(prediction.cdf(middle), tf.float64)
        # Of the integers of the block, those from the target on.
        above = tf.clip_by_value(start + size - target, 0.0, size)
        block = (size - above) * tf.square(below) + above * tf.square(1.0 - below)
        return index + 1.0, total + block

    # Where F is 0 or 1 but for what is rare.
    outside = tf.maximum(first - target, 0.0) + tf.maximum(target - end, 0.0)
    _, total = tf.while_loop(
        lambda index, _: index < num_terms,
        add,
        (tf.constant(0.0, tf.float64), outside),
    )
    return total
