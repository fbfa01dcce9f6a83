"""How often intervals hold the target."""

from typing import Any, Literal, overload

import keras
import numpy as np
import tensorflow as tf

from tfbbb.metrics.interval_metric import IntervalMetric, own_interval
from tfbbb.metrics.mean_score import averaged
from tfbbb.metrics.pit import ordered_values, step_at
from tfbbb.metrics.targets import checked_targets
from tfbbb.prediction.levels import checked_level


@overload
def interval_coverage(
    prediction: Any, y: Any, level: float = 0.9, *, per_row: Literal[False] = False
) -> float: ...


@overload
def interval_coverage(
    prediction: Any, y: Any, level: float = 0.9, *, per_row: Literal[True]
) -> np.ndarray: ...


def interval_coverage(
    prediction: Any, y: Any, level: float = 0.9, *, per_row: bool = False
) -> float | np.ndarray:
    """Computes the share of targets within their central predictive interval.

    Of a calibrated prediction it is `level`, with a standard deviation of
    `sqrt(level (1 - level) / n)` for n rows. It says nothing of how wide the intervals
    are: read it beside `interval_width`. Intervals of counts and ordered classes hold
    at least the probability `level`, and more where one value has much of it.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0, 2.0]])
    >>> tfbbb.metrics.interval_coverage(prediction, prediction.mean, level=0.5)
    1.0

    Args:
        prediction: A `tfbbb.Predictive` of numbers, counts or ordered classes.
        y: Targets in raw units, [rows, k] (or [rows] for one target).
        level: Probability of the interval, strictly between 0 and 1.
        per_row: Whether to return 1 or 0 target by target, [rows, k], and not the
            share.

    Raises:
        ValueError: For classes without an order, where the targets do not fit the
            prediction, or the level is not strictly between 0 and 1.
    """
    checked_level(level)
    targets = checked_targets(prediction, y, "ordered", "interval_coverage")
    return averaged(_covered(prediction, targets, level), per_row)


@keras.saving.register_keras_serializable(package="tfbbb.metrics")
class IntervalCoverage(IntervalMetric):
    """`interval_coverage` as a Keras metric.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> model.compile(metrics=[tfbbb.metrics.IntervalCoverage(0.9)])

    Args:
        level: Probability of the interval, strictly between 0 and 1.
        name: Name of the metric.
        dtype: Type of its state.
    """

    default_name = "interval_coverage"

    def score(self, prediction: Any, targets: tf.Tensor) -> tf.Tensor:
        return _covered(prediction, targets, self.level)


def _covered(prediction: Any, targets: Any, level: float) -> tf.Tensor:
    bounds = own_interval(prediction, level)
    if bounds is not None:
        values = ordered_values(prediction, targets)
        held = (bounds[0] <= values) & (values <= bounds[1])
        return tf.cast(held, tf.float64)
    # y is between two quantiles where F(y) is between their levels, for which nothing
    # need be inverted.
    below, up_to = step_at(prediction, targets)
    tail = 0.5 - level / 2.0
    return tf.cast((up_to >= tail) & (below <= 1.0 - tail), tf.float64)
