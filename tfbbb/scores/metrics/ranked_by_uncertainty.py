"""The base of metrics that rank rows by their uncertainty."""

import math

import tensorflow as tf

from tfbbb.base.types import Config, DType
from tfbbb.prediction.result import Predictive
from tfbbb.scores.metrics.predictive_metric import PredictiveMetric
from tfbbb.scores.metrics.uncertainty import (
    check_uncertainty,
    named_uncertainty,
    uncertainty,
)

# An uncertainty may have any unit, so bins have equal width in its logarithm: 0.14 %
# each, from 4e-15 to 3e14.
_BINS_PER_OCTAVE = 512
_OCTAVES = 48
_BINS = 2 * _OCTAVES * _BINS_PER_OCTAVE


class RankedByUncertainty(PredictiveMetric):
    """Sums weights and values of rows in narrow bins of their uncertainty.

    The bins replace storing all rows: rows in the same bin, whose uncertainties differ
    by less than 0.14 %, count as equally uncertain.

    Args:
        by: The uncertainty; None for the entropy of classes and `of_numbers` otherwise.
        name: Name of the metric.
        dtype: Type of its state.
    """

    of_numbers: str

    def __init__(
        self, by: str | None = None, name: str | None = None, dtype: DType = None
    ):
        super().__init__(name=name, dtype=dtype)
        self.by = check_uncertainty(by)
        self.weights = self.add_variable((_BINS,), "zeros", name="weights")
        self.values = self.add_variable((_BINS,), "zeros", name="values")

    def add(
        self, prediction: Predictive, values: tf.Tensor, weights: tf.Tensor
    ) -> None:
        """Adds the values [rows] and weights [rows] of rows to their bins."""
        if len(weights.shape) > 1:
            raise ValueError(
                f"`{self.name}` ranks whole rows by their uncertainty, so it takes no "
                "weights and no mask of their steps. Choose another metric, or give "
                f"each row one weight. Received: weights of shape {weights.shape}"
            )
        by = named_uncertainty(prediction, self.by, self.of_numbers)
        octaves = tf.math.log(uncertainty(prediction, by)) / math.log(2.0) + _OCTAVES
        # The logarithm of 0 is minus infinity, which has no integer.
        position = tf.clip_by_value(octaves * _BINS_PER_OCTAVE, 0.0, _BINS - 1.0)
        index = tf.cast(position, tf.int32)
        for variable, summands in (
            (self.weights, weights),
            (self.values, weights * tf.cast(values, weights.dtype)),
        ):
            summed = tf.math.unsorted_segment_sum(summands, index, _BINS)
            variable.assign_add(tf.cast(summed, self.dtype))

    def get_config(self) -> Config:
        return {**super().get_config(), "by": self.by}
