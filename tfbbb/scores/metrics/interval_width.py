"""The width of predictive intervals."""

from typing import Literal, overload

import keras
import numpy as np
import tensorflow as tf

from tfbbb.prediction.levels import checked_level
from tfbbb.prediction.result import Predictive
from tfbbb.scores.metrics.interval_metric import IntervalMetric
from tfbbb.scores.metrics.mean_score import average


@overload
def interval_width(
    prediction: Predictive, level: float = 0.9, *, per_row: Literal[False] = False
) -> float: ...


@overload
def interval_width(
    prediction: Predictive, level: float = 0.9, *, per_row: Literal[True]
) -> np.ndarray: ...


def interval_width(
    prediction: Predictive, level: float = 0.9, *, per_row: bool = False
) -> float | np.ndarray:
    """Computes the mean width of central predictive intervals, in units of y.

    Among predictions with the right `interval_coverage`, narrower intervals are better
    (Gneiting et al. 2007). For counts and ordered classes the width is the difference
    of the last and the first value of the interval, 0 for a single value.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0, 2.0]])
    >>> narrow = tfbbb.metrics.interval_width(prediction, level=0.5)
    >>> narrow < tfbbb.metrics.interval_width(prediction, level=0.9)
    True

    Args:
        prediction: A `tfbbb.Predictive` of numbers, counts or ordered classes.
        level: Probability of the interval, strictly between 0 and 1.
        per_row: Whether to return the widths, [rows, k], instead of their mean.

    Raises:
        ValueError: The prediction is of classes without an order, or the level is not
            strictly between 0 and 1.
    """
    return average(_widths(prediction, checked_level(level)), per_row, prediction)


@keras.saving.register_keras_serializable(package="tfbbb.metrics")
class IntervalWidth(IntervalMetric):
    """`interval_width` as a Keras metric.

    With several draws per step, the metric inverts a distribution function in every
    step, which takes longer than a training step of a small network.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> model.compile(metrics=[tfbbb.metrics.IntervalWidth(0.9)])

    Args:
        level: Probability of the interval, strictly between 0 and 1.
        name: Name of the metric.
        dtype: Type of its state.
    """

    default_name = "interval_width"

    def score(self, prediction: Predictive, targets: tf.Tensor) -> tf.Tensor:
        return _widths(prediction, self.level)


def _widths(prediction: Predictive, level: float) -> tf.Tensor:
    if not getattr(prediction, "central_intervals", True):
        # Conformal intervals do not lie between quantiles.
        lower, upper = prediction.interval(level)
        return tf.cast(upper - lower, tf.float64)
    ends = prediction.quantile([0.5 - level / 2.0, 0.5 + level / 2.0])
    return tf.cast(ends[:, 1] - ends[:, 0], tf.float64)
