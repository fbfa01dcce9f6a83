"""The Brier score: the squared error of class probabilities."""

from typing import Literal, overload

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.types import (
    ArrayLike,
    Config,
    DType,
    Tensor,
)
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import brier_of_targets
from tfbbb.scores.metrics.mean_score import MeanScore, average
from tfbbb.scores.metrics.point_prediction import PredictedProbabilities
from tfbbb.scores.metrics.targets import checked_targets


@overload
def brier_score(
    prediction: Predictive, y: ArrayLike, *, per_row: Literal[False] = False
) -> float: ...


@overload
def brier_score(
    prediction: Predictive, y: ArrayLike, *, per_row: Literal[True]
) -> np.ndarray: ...


def brier_score(
    prediction: Predictive, y: ArrayLike, *, per_row: bool = False
) -> float | np.ndarray:
    """Computes the mean squared error of class probabilities (Brier 1950).

    For one row of C > 2 classes it is `sum_c (p_c - 1{y = c})^2`, from 0 to 2. For two
    classes it is half of that sum, `(p_1 - 1{y = 1})^2`, from 0 to 1. Scikit-learn's
    `brier_score_loss` computes the same. The score is proper; lower is better.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(3)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    >>> prediction = model.predictive([[1.0, 2.0], [3.0, 4.0]])
    >>> tfbbb.metrics.brier_score(prediction, [0, 2], per_row=True).shape
    (2,)

    Args:
        prediction: A `tfbbb.Predictive` of classes.
        y: Class indices or one-hot rows.
        per_row: Whether to return the score of each row, [rows], instead of the mean.

    Raises:
        ValueError: The prediction is of numbers, or the targets do not fit it.
    """
    targets = checked_targets(prediction, y, "classes", "brier_score", by_place=True)
    return average(brier_of_targets(prediction, targets), per_row, prediction)


@keras.saving.register_keras_serializable(package="tfbbb.metrics")
class BrierScore(MeanScore):
    """`brier_score` as a Keras metric, also for plain Keras models.

    Example:

    >>> import tfbbb
    >>> metric = tfbbb.metrics.BrierScore()
    >>> metric.update_state([1], [[0.4, 0.6]])
    >>> float(metric.result())
    0.16

    Args:
        from_logits: Whether a plain Keras model outputs logits instead of
            probabilities.
        name: Name of the metric.
        dtype: Type of its state.
    """

    scored = "classes"
    default_name = "brier_score"

    def __init__(
        self, from_logits: bool = False, name: str | None = None, dtype: DType = None
    ):
        super().__init__(name=name, dtype=dtype)
        self.from_logits = from_logits

    def of_mean(self, y_pred: Tensor) -> PredictedProbabilities:
        return PredictedProbabilities(y_pred, self.from_logits)

    def score(self, prediction: Predictive, targets: tf.Tensor) -> tf.Tensor:
        return brier_of_targets(prediction, targets)

    def get_config(self) -> Config:
        return {**super().get_config(), "from_logits": self.from_logits}
