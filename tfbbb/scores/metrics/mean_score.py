"""The base of metrics that average a score over rows."""

from typing import Any

import numpy as np
import tensorflow as tf

from tfbbb.base.types import DType, Tensor
from tfbbb.prediction.result import Predictive
from tfbbb.scores.metrics.predictive_metric import PredictiveMetric


class MeanScore(PredictiveMetric):
    """The weighted mean of a score over rows; subclasses override `score`.

    With weights of places, it is the weighted mean over places.
    """

    def __init__(self, name: str | None = None, dtype: DType = None):
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_variable((), "zeros", name="total")
        self.weight = self.add_variable((), "zeros", name="weight")

    def score(self, prediction: Predictive, targets: tf.Tensor) -> tf.Tensor:
        """Returns the scores of a prediction, [rows, ...]."""
        raise NotImplementedError

    def accumulate(
        self, prediction: Predictive, targets: tf.Tensor, weights: tf.Tensor
    ) -> None:
        scores = tf.cast(self.score(prediction, targets), weights.dtype)
        axes = range(len(weights.shape), len(scores.shape))
        scores = tf.reduce_mean(scores, axis=list(axes))
        self.add(tf.reduce_sum(weights * scores), tf.reduce_sum(weights))

    def add(self, total: tf.Tensor, weight: tf.Tensor) -> None:
        """Adds a sum of weighted scores and the sum of their weights."""
        self.total.assign_add(tf.cast(total, self.dtype))
        self.weight.assign_add(tf.cast(weight, self.dtype))

    def result(self) -> tf.Tensor:
        return tf.math.divide_no_nan(
            tf.convert_to_tensor(self.total), tf.convert_to_tensor(self.weight)
        )


def average(scores: Any, per_row: bool, prediction: Any = None) -> Tensor:
    """Returns scores as an array, or their mean as a number, without masked places.

    Args:
        scores: [rows, places..., ...].
        per_row: Whether to return the array.
        prediction: The prediction of these rows, whose `mask` says which places count;
            None if all do.
    """
    scores = np.asarray(scores)
    if per_row:
        return scores
    mask = getattr(prediction, "mask", None)
    return float((scores if mask is None else scores[mask]).mean())
