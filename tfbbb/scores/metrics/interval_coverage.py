"""The share of targets within their predictive intervals."""

from typing import Literal, overload

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike
from tfbbb.prediction.levels import checked_level
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import in_intervals
from tfbbb.scores.metrics.interval_metric import IntervalMetric
from tfbbb.scores.metrics.mean_score import average
from tfbbb.scores.metrics.targets import checked_targets


@overload
def interval_coverage(
    prediction: Predictive,
    y: ArrayLike,
    level: float = 0.9,
    *,
    per_row: Literal[False] = False,
) -> float: ...


@overload
def interval_coverage(
    prediction: Predictive, y: ArrayLike, level: float = 0.9, *, per_row: Literal[True]
) -> np.ndarray: ...


def interval_coverage(
    prediction: Predictive, y: ArrayLike, level: float = 0.9, *, per_row: bool = False
) -> float | np.ndarray:
    """Computes the share of targets within their central predictive interval.

    For a calibrated prediction of n rows the coverage is `level`, with a standard
    deviation of `sqrt(level (1 - level) / n)`. Coverage does not depend on the width of
    the intervals: report it together with `interval_width`. Intervals of counts and
    ordered classes have at least the probability `level`, and more if a single value
    has a high probability.

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
        per_row: Whether to return 1 or 0 for each target, [rows, k], instead of the
            share.

    Raises:
        ValueError: The prediction is of classes without an order, the targets do not
            fit the prediction, or the level is not strictly between 0 and 1.
    """
    checked_level(level)
    targets = checked_targets(
        prediction, y, "ordered", "interval_coverage", by_place=True
    )
    return average(_covered(prediction, targets, level), per_row, prediction)


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

    def score(self, prediction: Predictive, targets: tf.Tensor) -> tf.Tensor:
        return _covered(prediction, targets, self.level)


def _covered(prediction: Predictive, targets: ArrayLike, level: float) -> tf.Tensor:
    return tf.cast(in_intervals(prediction, targets, [level])[:, 0], tf.float64)
