"""The error of the predictive mean."""

from typing import Literal, overload

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.prediction.result import Predictive
from tfbbb.scores.metrics.mean_score import MeanScore, average
from tfbbb.scores.metrics.point_prediction import PredictedNumbers
from tfbbb.scores.metrics.targets import checked_targets


@overload
def root_mean_squared_error(
    prediction: Predictive, y: ArrayLike, *, per_row: Literal[False] = False
) -> float: ...


@overload
def root_mean_squared_error(
    prediction: Predictive, y: ArrayLike, *, per_row: Literal[True]
) -> np.ndarray: ...


def root_mean_squared_error(
    prediction: Predictive, y: ArrayLike, *, per_row: bool = False
) -> float | np.ndarray:
    """Computes `sqrt(mean((E[y] - y)^2))` over rows and targets, in units of y.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0, 2.0]])
    >>> tfbbb.metrics.root_mean_squared_error(prediction, prediction.mean + 3.0)
    3.0

    Args:
        prediction: A `tfbbb.Predictive` of numbers.
        y: Targets in raw units, [rows, k] (or [rows] for one target).
        per_row: Whether to return the absolute error of each target, [rows, k],
            instead.

    Raises:
        ValueError: The prediction is of classes, or the targets do not fit it.
    """
    targets = checked_targets(
        prediction, y, "numbers", "root_mean_squared_error", by_place=True
    )
    squares = np.asarray(_squared_errors(prediction, targets))
    if per_row:
        return np.sqrt(squares)
    return float(np.sqrt(average(squares, False, prediction)))


@keras.saving.register_keras_serializable(package="tfbbb.metrics")
class RootMeanSquaredError(MeanScore):
    """`root_mean_squared_error` as a Keras metric, also for plain Keras models.

    Example:

    >>> import tfbbb
    >>> metric = tfbbb.metrics.RootMeanSquaredError()
    >>> metric.update_state([[1.0], [2.0]], [[4.0], [6.0]])
    >>> float(metric.result())  # sqrt((9 + 16) / 2)
    3.5355
    """

    scored = "numbers"
    default_name = "root_mean_squared_error"

    def of_mean(self, y_pred: Tensor) -> PredictedNumbers:
        return PredictedNumbers(y_pred)

    def score(self, prediction: Predictive, targets: tf.Tensor) -> tf.Tensor:
        return _squared_errors(prediction, targets)

    def result(self) -> tf.Tensor:
        return tf.sqrt(super().result())


def _squared_errors(prediction: Predictive, targets: ArrayLike) -> tf.Tensor:
    return tf.square(tf.cast(prediction.mean, tf.float64) - targets)
