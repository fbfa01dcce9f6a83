"""The base of metrics that average a score over rows."""

from typing import Any

import numpy as np
import tensorflow as tf

from tfbbb.metrics.predictive_metric import PredictiveMetric
from tfbbb.prediction.result import Predictive
from tfbbb.types import DType, Tensor


class MeanScore(PredictiveMetric):
    """The weighted mean of a score over rows; subclasses override `score`."""

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
        scores = tf.reduce_mean(scores, axis=list(range(1, len(scores.shape))))
        self.total.assign_add(tf.cast(tf.tensordot(weights, scores, 1), self.dtype))
        self.weight.assign_add(tf.cast(tf.reduce_sum(weights), self.dtype))

    def result(self) -> tf.Tensor:
        return tf.math.divide_no_nan(
            tf.convert_to_tensor(self.total), tf.convert_to_tensor(self.weight)
        )


def average(scores: Any, per_row: bool) -> Tensor:
    """Returns scores as an array, or their mean as a number."""
    scores = np.asarray(scores)
    return scores if per_row else float(scores.mean())
